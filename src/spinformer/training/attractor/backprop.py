"""Train the transformer baselines with backpropagation, separately for each task (ATT sections III and V-C)."""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer._base.progress import progress_bar
from spinformer.data.corruption import corrupt
from spinformer.models.attractor.transformer import RecurrentTransformer, VisionTransformer
from spinformer.training.checkpoint import Checkpoint, tensor_fingerprint
from spinformer.training.schedule import schedule
from spinformer.training.seeding import step_seed

DEPTHS = (3, 7)  # a training step repeats the block a random number of times between these (ATT section III)
STRIDE = 100_003


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


def train_transformer(
    model: VisionTransformer,
    images: Tensor,
    recipe: BackpropRecipe,
    *,
    checkpoint: Path | None = None,
    on_epoch: Callable[[int], None] | None = None,
    quiet: bool = False,
) -> list[float]:
    """Train in place on the mean square error of the judged pixels; returns that of each epoch.

    checkpoint: a file that is written after every epoch; a run that finds it continues from it, to the same weights.
    """
    device = model.position.device
    images = images.to(device)
    per_epoch = -(-len(images) // recipe.batch)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay, fused=device.type == "cuda"
    )
    scheduler = schedule(optimiser, "cosine", per_epoch * recipe.epochs, warmup=recipe.warmup, from_zero=False)
    parts: dict[str, Any] = {"model": model, "optimiser": optimiser, "rate": scheduler}
    run = {"model": type(model).__name__, "recipe": asdict(recipe)}
    if checkpoint is not None:
        run["images"] = tensor_fingerprint(images)
    file = Checkpoint(checkpoint, run)
    history: list[float] = []
    state = file.read(device)
    if state is not None:
        history = state["history"]
        for name, part in parts.items():
            part.load_state_dict(state[name])
    bar = progress_bar(
        recipe.epochs, f"{type(model).__name__} {recipe.task}", unit="epoch", done=len(history), quiet=quiet
    )
    model.train()
    for epoch in range(len(history), recipe.epochs):
        seed = step_seed(recipe.seed, epoch, STRIDE)
        generator, depths = torch.Generator(device).manual_seed(seed), random.Random(seed)
        total = torch.zeros((), device=device)
        for rows in torch.randperm(len(images), generator=generator, device=device).split(recipe.batch):
            batch = corrupt(images[rows], recipe.task, model.cutter, generator=generator)
            options = {"steps": depths.randint(*DEPTHS)} if isinstance(model, RecurrentTransformer) else {}
            restored = model(batch.given, batch.mask, **options)
            judged = batch.judged.to(restored.dtype)
            loss = ((restored - batch.clean).square() * judged).sum() / judged.sum()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            scheduler.step()
            total += loss.detach()
        history.append(total.item() / per_epoch)
        bar.update()
        bar.set_postfix(error=f"{history[-1]:.4f}")
        file.write({"history": history, **{name: part.state_dict() for name, part in parts.items()}})
        if on_epoch is not None:
            on_epoch(epoch + 1)
    bar.close()
    model.eval()
    return history
