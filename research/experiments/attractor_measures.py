"""Measurements of a trained model on images that it has not corrupted.

Errors are mean squares over the judged pixels after t = 0, 1, 2, ... steps; t = 0 is the corrupted image, which
the masked task does not have.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from spinformer.attractor.embedding import PatchEmbedding
from spinformer.data.corruption import TASKS, Corrupted, corrupt
from spinformer.models.attractor import AttractorNetwork, RecurrentTransformer, VisionTransformer

Model = AttractorNetwork | VisionTransformer
BATCH = 500
BINS = torch.linspace(0, 0.25, 51)  # of the variance within patches


def image_shape(images: Tensor) -> tuple[int, int, int]:
    """Channels, height and width of images (B, C, H, W)."""
    return images.shape[1], images.shape[2], images.shape[3]


def cutter_of(model: Model) -> PatchEmbedding:
    """How the model cuts images into patches."""
    return model.embedding if isinstance(model, AttractorNetwork) else model.cutter


@torch.no_grad()
def restored(model: Model, corrupted: Corrupted, steps: int, *, pin: bool = False) -> Tensor:
    """Images after 1..steps steps: (steps, B, C, H, W); one step only for a model that is not recurrent."""
    if isinstance(model, AttractorNetwork):
        return model.images(model.trajectory(corrupted.given, steps, corrupted.mask, pin=pin, unbounded=True)[1:])
    if isinstance(model, RecurrentTransformer):
        return torch.stack(model.trajectory(corrupted.given, corrupted.mask, steps))
    only: Tensor = model(corrupted.given, corrupted.mask)
    return only[None]


def errors(model: Model, images: Tensor, task: str, steps: int, *, pin: bool = False, seed: int = 0) -> dict[str, Any]:
    """Error after each step with its standard error over images.

    corrupted: the error of the corrupted images; all_pixels: the error over all pixels after each step, where the
    judged ones are some of them.
    """
    generator = torch.Generator(images.device).manual_seed(seed)
    sums: list[Tensor] = []
    whole: list[Tensor] = []
    before: list[Tensor] = []
    for batch in images.split(BATCH):
        corrupted = corrupt(batch, task, cutter_of(model), generator=generator)
        judged = corrupted.judged.to(batch.dtype)
        count = judged.flatten(1).sum(1)
        missed = (restored(model, corrupted, steps, pin=pin) - batch).square()
        sums.append((missed * judged).flatten(2).sum(2) / count)
        whole.append(missed.flatten(2).mean(2))
        before.append(((corrupted.given - batch).square() * judged).flatten(1).sum(1) / count)
    per_image = torch.cat(sums, dim=1)
    curve = per_image.mean(1).tolist()
    best = min(range(len(curve)), key=curve.__getitem__)
    stderr = (per_image.std(1) / per_image.shape[1] ** 0.5).tolist()
    outcome: dict[str, Any] = {"error": curve, "stderr": stderr, "best": curve[best], "best_step": best + 1}
    if task == "masked":
        outcome["all_pixels"] = torch.cat(whole, dim=1).mean(1).tolist()
    if task == "noisy":
        outcome["corrupted"] = torch.cat(before).mean().item()
        outcome["ratio"] = outcome["best"] / outcome["corrupted"]
    return outcome


@torch.no_grad()
def attractor_of(
    network: AttractorNetwork, images: Tensor, mean: Tensor, steps: int, *, seed: int = 0
) -> dict[str, Any]:
    """Where the dynamics ends: do states from different images meet, and do they resemble the mean digit?"""
    outcome: dict[str, Any] = {}
    ends = []
    for task in TASKS:
        generator = torch.Generator(images.device).manual_seed(seed)
        corrupted = corrupt(images[:BATCH], task, network.embedding, generator=generator)
        path = network.trajectory(corrupted.given, steps, corrupted.mask, unbounded=True)
        final = network.images(path[-1]).flatten(1)
        ends.append(final.mean(0))
        starts = corrupted.clean.flatten(1)
        outcome[task] = {
            "spread_of_ends": _spread(final),
            "spread_of_images": _spread(starts),
            "similarity_of_ends": _similarity(path[-1].flatten(1)),
            "similarity_of_spins": _similarity(network.spins(corrupted.clean).flatten(1)),
            "still_moving": ((path[-1] - path[-2]).norm() / path[-1].norm()).item(),
            "correlation_with_mean_digit": _correlation(final.mean(0), mean.flatten()),
        }
    outcome["correlation_between_tasks"] = _correlation(ends[0], ends[1])
    outcome["steps"] = steps
    outcome["image"] = ends[0].tolist()
    return outcome


def patch_variance(model: Model, images: Tensor, step: int, *, seed: int = 0) -> dict[str, Any]:
    """Variance of the predicted pixels within each hidden patch, and of the true ones."""
    generator = torch.Generator(images.device).manual_seed(seed)
    predicted, true = [], []
    for batch in images.split(BATCH):
        corrupted = corrupt(batch, "masked", cutter_of(model), generator=generator)
        assert corrupted.mask is not None
        cut = cutter_of(model).patches
        predicted.append(cut(restored(model, corrupted, step)[-1]).var(-1, correction=0)[corrupted.mask])
        true.append(cut(batch).var(-1, correction=0)[corrupted.mask])
    ours, theirs = torch.cat(predicted), torch.cat(true)
    return {
        "mean": ours.mean().item(),
        "median": ours.median().item(),
        "true_mean": theirs.mean().item(),
        "histogram": (torch.histogram(ours.cpu(), BINS).hist / len(ours)).tolist(),
        "true_histogram": (torch.histogram(theirs.cpu(), BINS).hist / len(theirs)).tolist(),
        "step": step,
    }


@torch.no_grad()
def overlap(network: AttractorNetwork, images: Tensor, steps: int, *, seed: int = 0) -> dict[str, Any]:
    """Mean cosine between the hidden tokens' spins and the true ones after each step from a masked image.

    `floor` is the overlap of the mean spin of each site, what a memory of nothing but the mean would reach.
    """
    generator = torch.Generator(images.device).manual_seed(seed)
    corrupted = corrupt(images, "masked", network.embedding, generator=generator)
    assert corrupted.mask is not None
    embed = network.embedding.encode
    true = embed(corrupted.clean)
    path = network.images(network.trajectory(corrupted.given, steps, corrupted.mask, unbounded=True)[1:])
    curve = [cosine_similarity(embed(state), true, dim=-1)[corrupted.mask].mean().item() for state in path]
    floor = cosine_similarity(true.mean(0).expand_as(true), true, dim=-1)[corrupted.mask].mean().item()
    return {"overlap": curve, "best": max(curve), "best_step": curve.index(max(curve)) + 1, "floor": floor}


def _spread(x: Tensor) -> float:
    return (x - x.mean(0)).square().mean().item()


def _similarity(x: Tensor) -> float:
    """Mean cosine over pairs of different rows."""
    unit = x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)
    n = len(unit)
    return ((unit.sum(0).square().sum().item()) - n) / (n * (n - 1))


def _correlation(a: Tensor, b: Tensor) -> float:
    return float(torch.corrcoef(torch.stack((a, b)))[0, 1])
