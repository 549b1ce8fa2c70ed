"""How useful the bare layer is: λ, γ and steps chosen on held-out images, errors on test images.

The couplings of a setting are trained once and serve both tasks. For each task the strength λ, the inertia γ and the
number of steps are chosen on held-out training images from one grid, the same for every setting. The error on test
images is reported beside the trivial predictors: zero, the mean image, the mean of the visible neighbours.
"""

from itertools import product
from typing import Any

from torch import Tensor

from research.experiments import attractor_measures as measures
from research.experiments.attractor_claims import NOISY_BAR
from spinformer.data.corruption import TASKS
from spinformer.models.attractor import AttractorNetwork

SETTINGS, STEPS = ("paper", "field"), 12
STRENGTHS = (0.3, 0.6, 0.8, 1.0, 2.0, 5.0)
INERTIAS = (0.0, 0.1, 0.25, 0.5, 1.0)


def together(settings: dict[str, list[dict[str, Any]]], trivial: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The outcome: what `tuned` gave for each setting and seed, and a table of the errors.

    settings: by name and patch size, for each seed; trivial: the errors of predictors that need no model.
    """
    table = {key: _summary(key, runs, trivial) for key, runs in settings.items()}
    best = table["field-2"]
    passed = best["beats_trivial_masked"] and best["noisy_within_bar"]
    return {"trivial": trivial, "settings": settings, "table": table, "passed": passed}


def tuned(network: AttractorNetwork, held_out: Tensor, test: Tensor) -> dict[str, Any]:
    """For each task, the error on test images with the λ, γ and steps that are best on held-out ones."""
    before = network.layer.strength, network.layer.inertia
    runs = {task: _tuned(network, held_out, test, task) for task in TASKS}
    network.layer.strength, network.layer.inertia = before
    return runs


def _tuned(network: AttractorNetwork, held_out: Tensor, test: Tensor, task: str) -> dict[str, Any]:
    rows = []
    for strength, inertia in product(STRENGTHS, INERTIAS):
        network.layer.strength, network.layer.inertia = strength, inertia
        curve = measures.errors(network, held_out, task, STEPS)
        rows.append({"strength": strength, "inertia": inertia, "step": curve["best_step"], "held_out": curve["best"]})
    chosen: dict[str, Any] = min(rows, key=lambda row: float(row["held_out"]))
    network.layer.strength, network.layer.inertia = chosen["strength"], chosen["inertia"]
    curve = measures.errors(network, test, task, STEPS)
    last = chosen["step"] - 1
    return chosen | {
        "error": curve["error"][last],
        "stderr": curve["stderr"][last],
        "corrupted": curve.get("corrupted"),
    }


def _summary(key: str, runs: list[dict[str, Any]], trivial: dict[str, dict[str, float]]) -> dict[str, Any]:
    patch = key.rsplit("-", 1)[1]
    masked, noisy = ([run[task]["error"] for run in runs] for task in TASKS)
    ratio = [run["noisy"]["error"] / run["noisy"]["corrupted"] for run in runs]
    rivals = {task: min(trivial[f"{task}-{patch}"].values()) for task in TASKS}
    knobs = {task: {k: runs[0][task][k] for k in ("strength", "inertia", "step")} for task in TASKS}
    return {
        "masked": sum(masked) / len(masked),
        "masked_spread": max(masked) - min(masked),
        "noisy": sum(noisy) / len(noisy),
        "noisy_spread": max(noisy) - min(noisy),
        "noisy_ratio": sum(ratio) / len(ratio),
        "corrupted": runs[0]["noisy"]["corrupted"],
        "knobs": knobs,
        "best_trivial": rivals,
        "beats_trivial_masked": max(masked) < rivals["masked"],
        "beats_trivial_noisy": max(noisy) < rivals["noisy"],
        "noisy_within_bar": max(ratio) <= NOISY_BAR,
        "seeds": len(runs),
    }
