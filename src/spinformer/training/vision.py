"""Training the transformer baselines with backpropagation, separately for each task."""

import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from tqdm.auto import tqdm

from spinformer.data.corruption import corrupt
from spinformer.models.vision.transformer import RecurrentTransformer, VisionTransformer
from spinformer.whole import whole

STEPS = (3, 7)  # τ is drawn from 3..7 at every training step


@dataclass(frozen=True)
class BackpropRecipe:
    """AdamW with a warm-up and a cosine decay; the paper trains 100 epochs of batch 256."""

    task: str
    epochs: int = 100
    batch: int = 256
    rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.05
    seed: int = 0


def train(
    model: VisionTransformer,
    images: Tensor,
    recipe: BackpropRecipe,
    *,
    checkpoint: Path | None = None,
    on_epoch: Callable[[int], None] | None = None,
    quiet: bool = False,
) -> list[float]:
    """Train in place on the judged pixels' square error; returns each epoch's. Resumes from `checkpoint`."""
    device = model.position.device
    images = images.to(device)
    per_epoch = -(-len(images) // recipe.batch)
    total = per_epoch * recipe.epochs
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay, fused=device.type == "cuda"
    )
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, total, recipe.warmup))
    described = repr((type(model).__name__, asdict(recipe), len(images)))
    history: list[float] = []
    if checkpoint is not None and checkpoint.is_file():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        if saved["run"] != described:
            raise ValueError(f"{checkpoint} belongs to another run ({saved['run']}); this one is {described}")
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        rate.load_state_dict(saved["rate"])
        history = saved["history"]
    bar = tqdm(
        range(len(history), recipe.epochs),
        desc=f"{type(model).__name__} {recipe.task}",
        unit="epoch",
        leave=False,
        disable=True if quiet else None,
    )
    model.train()
    for epoch in bar:
        seed = recipe.seed * 100003 + epoch
        generator = torch.Generator(device).manual_seed(seed)
        depth = random.Random(seed)
        missed = torch.zeros((), device=device)
        for index in torch.randperm(len(images), generator=generator, device=device).split(recipe.batch):
            seen = corrupt(images[index], recipe.task, model.cutter, generator=generator)
            if isinstance(model, RecurrentTransformer):
                restored = model(seen.given, seen.mask, steps=depth.randint(*STEPS))
            else:
                restored = model(seen.given, seen.mask)
            judged = seen.judged.to(restored.dtype)
            loss = ((restored - seen.clean).square() * judged).sum() / judged.sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            rate.step()
            missed += loss.detach()
        history.append(missed.item() / per_epoch)
        bar.set_postfix(error=f"{history[-1]:.4f}")
        if checkpoint is not None:
            _write(checkpoint, described, model, optimiser, rate, history)
        if on_epoch is not None:
            on_epoch(epoch + 1)
    model.eval()
    return history


def _rate(step: int, total: int, warmup: float) -> float:
    rise = max(1, round(warmup * total))
    if step < rise:
        return (step + 1) / rise
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - rise) / max(1, total - rise))))


def _write(
    path: Path,
    described: str,
    model: VisionTransformer,
    optimiser: torch.optim.Optimizer,
    rate: torch.optim.lr_scheduler.LambdaLR,
    history: list[float],
) -> None:
    state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "rate": rate.state_dict()}
    with whole(path) as partial:
        torch.save({"run": described, "history": history, **state}, partial)
