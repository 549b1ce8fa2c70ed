"""λ in training and in testing, in the paper's own setting: unit spins, γ = 1, the norm of the couplings held.

Each λ of training is tried with each of testing, on held-out training images, never on test images.
"""

from dataclasses import replace
from itertools import product
from typing import Any

from torch import Tensor

from research.experiments import attractor_measures as measures
from spinformer._base.parallel import run_tasks
from spinformer._base.progress import progress
from spinformer.models.attractor import AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor

STEPS = 20
HOLDS = ("site", "pair")
TRAINED = (1.0, 5.0, 20.0)
TESTED = (0.2, 1.0, 5.0, 20.0)


def run(
    images: Tensor, held_out: Tensor, *, epochs: int | None, device: str, processes: int = 1
) -> list[dict[str, Any]]:
    """A row for each norm that is held, λ of training and λ of testing; epochs: None for the paper's."""
    settings = list(product(HOLDS, TRAINED))
    tasks = [(hold, strength, images, held_out, epochs, device) for hold, strength in settings]
    found = dict(progress(run_tasks(_rows, tasks, processes=processes), "strengths", len(tasks)))
    return [row for index in range(len(settings)) for row in found[index]()]


def _rows(
    hold: Any, strength: float, images: Tensor, held_out: Tensor, epochs: int | None, device: str
) -> list[dict[str, Any]]:
    images, held_out = images.to(device), held_out.to(device)
    config, recipe = preset("paper", image=measures.image_shape(images))
    recipe = replace(recipe, strength=strength, hold=hold, epochs=epochs or recipe.epochs)
    network = AttractorNetwork(config).to(device)
    train_attractor(network, images, recipe, quiet=True)
    rows = []
    for tested in TESTED:
        network.layer.strength = tested
        row: dict[str, Any] = {"hold": hold, "trained": strength, "tested": tested, "epochs": recipe.epochs}
        for task in ("masked", "noisy"):
            curve = measures.errors(network, held_out, task, STEPS, pin=False)
            row[task] = {"best": curve["best"], "step": curve["best_step"]}
        rows.append(row)
    return rows
