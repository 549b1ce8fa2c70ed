"""A classifier of MiniLM's size with each of its pooling heads: the time of a training step and of an inference.

The encoder is the same, so the heads are timed in turn, one step of each after the other: whatever else slows the
machine slows them alike. On a GPU these steps wait for the host most of the time.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from research.benchmarks.timing import seconds_in_turn
from spinformer._base.rng import seeded

SHAPES = {"cuda": ((32, 128), (128, 32)), "cpu": ((32, 8), (32, 128), (128, 32))}  # tokens and texts
POOLING = ("cls", "mean", "neurogame")
TRAININGS = {"cuda": 30, "cpu": 4}  # steps of each head that are timed
INFERENCES = {"cuda": 100, "cpu": 10}
WARM_UP = {"cuda": 5, "cpu": 1}  # on a GPU until CUDA graphs are recorded


def classifier_rows(tokens: int, texts: int, seed: int, device: torch.device) -> list[dict[str, Any]]:
    """A row for each pooling head, for texts of one length; of the game's also what compiling it takes."""
    kind = device.type
    with seeded(seed):
        models = {head: _model(head).to(device) for head in POOLING}
        ids = torch.randint(5, 30_000, (texts, tokens)).to(device)
        labels = torch.randint(0, 3, (texts,)).to(device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    trainings = [_training(model.train(), inputs | {"labels": labels}) for model in models.values()]
    trained = seconds_in_turn(trainings, TRAININGS[kind], WARM_UP[kind])
    inferences = [_inference(model.eval(), inputs) for model in models.values()]
    inferred = seconds_in_turn(inferences, INFERENCES[kind], WARM_UP[kind])
    rows: list[dict[str, Any]] = [
        {"head": head, "tokens": tokens, "texts": texts, "training": step, "inference": answer}
        for head, step, answer in zip(models, trained, inferred, strict=True)
    ]
    if kind == "cuda" and (tokens, texts) == SHAPES[kind][0]:
        rows[-1]["compiled"] = _compiled(models[POOLING[-1]], inputs | {"labels": labels})
    return rows


def _model(head: str) -> Any:
    from transformers import BertConfig

    from spinformer.models import NeuroGameConfig, NeuroGameForSequenceClassification

    encoder = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    return NeuroGameForSequenceClassification(NeuroGameConfig(encoder=encoder, head=head, num_labels=3))


def autocast(device: torch.device) -> torch.autocast:
    """bfloat16 on a GPU."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def _training(model: Any, inputs: dict[str, Tensor]) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def step() -> None:
        optimizer.zero_grad()
        with autocast(model.device):
            loss = model(**inputs).loss
        loss.backward()
        optimizer.step()

    return step


def _inference(model: Any, inputs: dict[str, Tensor]) -> Callable[[], None]:
    @torch.no_grad()
    def answer() -> None:
        with autocast(model.device):
            model(**inputs)

    return answer


def _compiled(model: Any, inputs: dict[str, Tensor]) -> dict[str, float]:
    """Of a classifier under torch.compile: seconds until the first gradients are there, and how far they differ."""
    leaves = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def step(called: Any) -> list[Tensor]:
        with autocast(model.device):
            out = called(**inputs)
        slopes = torch.autograd.grad(out.loss.float(), leaves, allow_unused=True)
        return [out.logits.detach().float(), *(slope.float() for slope in slopes if slope is not None)]

    expected = [part.clone() for part in step(model)]
    torch.compiler.reset()
    start = time.perf_counter()
    found = step(torch.compile(model))
    taken = time.perf_counter() - start
    whole = [torch.cat([part.flatten() for part in parts[1:]]) for parts in (found, expected)]
    slopes = float((whole[0] - whole[1]).norm() / whole[1].norm())
    values = float((found[0] - expected[0]).abs().max() / expected[0].abs().max())
    return {"seconds": taken, "values": values, "gradients": slopes}
