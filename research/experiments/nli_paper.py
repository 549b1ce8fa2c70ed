"""Rows of the stages `paper`, `literal` and `ablations`: the NeuroGame Transformer as published, and its parts.

`paper` and `ablations` have the recipe of NGT section 7.3 at 8 times its batch, so that a run takes minutes. For Adam
the learning rate then grows with the square root of the factor (Malladi et al., 2022), and the decay of the averaged
weights is raised to its power (Busbridge et al., 2023). `literal` has the batch of the paper.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from research.experiments.nli import DEV, Job
from research.paths import RECIPES
from spinformer.training.classifier.options import read_yaml

SETS = (DEV, "snli_test", "mnli_dev_matched")
READ_TEXTS = 300  # of SNLI test, on which the trained layer is read
FACTOR = 8
# Pooling heads under the recipe of the paper. `default` has the layer of research/recipes/nli/default.yaml.
FORMS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "spins": {"head": "spins"},
    "default": {"game": {"couplings": "linear", "draws": "shared"}},
    "cls": {"head": "cls"},
}
# One change of the paper's layer at a time; K is that of training and evaluation.
ABLATIONS: Mapping[str, Mapping[str, Any]] = {
    "lambda-0": {"gate": 0.0},
    "lambda-1": {"gate": 1.0},
    "no-couplings": {"couplings": "none"},
    **{f"gamma-{gamma:g}": {"temperature": gamma} for gamma in (0.05, 1.0, 5.0, 25.0)},
    **{f"K-{count}": {"samples": count, "eval_samples": count} for count in (5, 50, 200, 1000)},
    **{f"T-{steps}": {"max_steps": steps} for steps in (1, 5, 50)},
    **{f"heads-{heads}": {"heads": heads} for heads in (4, 12)},
}
# Of the five epochs of the recipe one is run, with the same shape of the learning rate.
SHORT: Mapping[str, Any] = {"epochs": 1, "milestones": [0.6, 0.8]}
CHECKPOINT_STEPS = 2000  # a run of `literal` that is stopped continues from the last of these


def paper_recipe() -> dict[str, Any]:
    """The options of research/recipes/nli/paper.yaml."""
    return read_yaml(RECIPES / "nli" / "paper.yaml")


def wide() -> dict[str, Any]:
    """What changes with FACTOR times the batch."""
    recipe = paper_recipe()
    return {
        "batch_size": FACTOR * recipe["batch_size"],
        "accumulation": 1,
        "learning_rate": round(recipe["learning_rate"] * math.sqrt(FACTOR), 6),
        "ema": round(recipe["ema"] ** FACTOR, 3),
    }


def paper_jobs(seeds: Sequence[int], runs: Path) -> list[Job]:
    """Every form on the small encoder with all seeds, and on the larger one with the first."""
    common = wide()
    small = [
        Job(form, "paper", {**common, "encoder": "minilm", **changes}, seed)
        for form, changes in FORMS.items()
        for seed in seeds
    ]
    large = [
        Job(f"{form}-mpnet", "paper", {**common, "encoder": "mpnet", **changes}, seeds[0])
        for form, changes in FORMS.items()
    ]
    return small + large


def literal_jobs(seeds: Sequence[int], runs: Path) -> list[Job]:
    """The paper's form with the batch of the paper, in one part instead of two."""
    changes = {"encoder": "minilm", "accumulation": 1, "save_steps": CHECKPOINT_STEPS}
    return [Job("literal", "paper", changes, seed) for seed in seeds]


def ablation_jobs(seeds: Sequence[int], runs: Path) -> list[Job]:
    """The paper's form with all seeds, whose spread says what counts as a difference; each change with the first."""
    common, game = {**wide(), **SHORT, "encoder": "minilm"}, paper_recipe()["game"]
    return [
        *(Job("paper", "paper", common, seed) for seed in seeds),
        *(Job(name, "paper", {**common, "game": {**game, **changes}}, seeds[0]) for name, changes in ABLATIONS.items()),
    ]
