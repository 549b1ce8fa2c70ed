"""A search over settings of the bare layer, measured on held-out training images, never on test images.

Each setting is trained for a few epochs and then run with several λ and γ at test time. The best of each task is
stored, which shows what one task costs the other.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from torch import Tensor

from research.experiments import attractor_measures as measures
from spinformer._base.parallel import run_tasks
from spinformer._base.progress import progress
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe
from spinformer.training.attractor.train import train_attractor

STEPS = 6
STRENGTHS = (0.6, 0.8, 1.0)
INERTIAS = (0.0, 0.1, 0.25, 0.5)


def grid() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(preset, changes to the network, changes to the recipe)."""
    for patch, radius, hidden, noise in product((2, 4), (0.003, 0.01, 0.03), (0.3, 0.5), (0.0, 1.0, 2.0)):
        yield "field", {"patch": patch, "radius": radius}, {"hidden": hidden, "noise": noise}
    for patch, rate in product((2, 4), (0.01, 0.03, 0.3)):
        yield "field", {"patch": patch}, {"rate": rate}


def run(
    images: Tensor,
    held_out: Tensor,
    *,
    epochs: int = 3,
    limit: int | None = None,
    device: str = "cpu",
    processes: int = 1,
) -> list[dict[str, Any]]:
    """One row for each of the first `limit` settings of the grid, in its order."""
    settings = list(grid())[:limit]
    shares = [settings[start::processes] for start in range(min(processes, len(settings)))]
    tasks = [(share, images, held_out, epochs, device) for share in shares]
    rows: dict[int, dict[str, Any]] = {}
    for start, result in run_tasks(_rows, tasks, processes=len(tasks)):
        rows |= dict(zip(range(start, len(settings), processes), result(), strict=True))
    return [rows[index] for index in range(len(settings))]


def _rows(
    settings: list[tuple[str, dict[str, Any], dict[str, Any]]],
    images: Tensor,
    held_out: Tensor,
    epochs: int,
    device: str,
) -> list[dict[str, Any]]:
    images, held_out, rows = images.to(device), held_out.to(device), []
    for name, network_changes, recipe_changes in progress(settings, "sweep"):
        config, recipe = preset(name, image=measures.image_shape(images))
        config = replace(config, **network_changes)
        recipe = replace(recipe, epochs=epochs, **recipe_changes)
        rows.append(_row(name, config, recipe, images, held_out) | {"changes": {**network_changes, **recipe_changes}})
    return rows


def _row(
    name: str, config: AttractorConfig, recipe: AttractorRecipe, images: Tensor, held_out: Tensor
) -> dict[str, Any]:
    network = AttractorNetwork(config).to(images.device)
    history = train_attractor(network, images, recipe, quiet=True)
    masked: list[dict[str, Any]] = []
    noisy: list[dict[str, Any]] = []
    for strength, inertia in product(STRENGTHS, INERTIAS):
        network.layer.strength, network.layer.inertia = strength, inertia
        for rows, task, pin in (
            (masked, "masked", False),
            (masked, "masked", True),
            (noisy, "noisy", False),
        ):
            curve = measures.errors(network, held_out, task, STEPS, pin=pin)
            setting = {"strength": strength, "inertia": inertia, "pin": pin}
            rows.append({**setting, "best": curve["best"], "step": curve["best_step"], "error": curve["error"]})
    free = [row for row in masked if not row["pin"]]
    return {
        "preset": name,
        "loss": [record["loss"] for record in history],
        "masked": min(free, key=_best),
        "masked_pinned": min((row for row in masked if row["pin"]), key=_best),
        "noisy": min(noisy, key=_best),
        "as_trained": {
            "masked": next(r["error"] for r in free if r["strength"] == 1.0 and r["inertia"] == 0.0),
            "noisy": next(r["error"] for r in noisy if r["strength"] == 1.0 and r["inertia"] == 0.0),
        },
    }


def _best(row: dict[str, Any]) -> float:
    return float(row["best"])
