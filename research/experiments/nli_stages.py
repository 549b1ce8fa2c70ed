"""Stages of `spinformer reproduce nli`: which recipes, which seeds, scored on which sets."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from research.experiments import nli_paper
from research.experiments.nli import DEV, TESTS, Job
from research.paths import RECIPES
from spinformer.training.classifier.options import read_yaml

SEEDS = (0, 1, 2)
# Rows of the table that share one recipe but for their pooling head: the file in research/recipes/nli, and changes.
HEADS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "neurogame": ("default", {}),
    "cls": ("default", {"head": "cls"}),
    "mean": ("default", {"head": "mean"}),
    "attention": ("default", {"head": "attention"}),
    "released": ("default", {"head": "released"}),
    "paper": ("paper-layer", {}),
    "grounded": ("grounded", {}),
}
# What the search held fixed: the default recipe as it was before the search.
START: Mapping[str, Any] = {
    "epochs": 3,
    "batch_size": 128,
    "learning_rate": 2e-4,
    "consistency": 0.0,
    "residual": True,
}
LINEAR: Mapping[str, Any] = {"couplings": "linear", "draws": "shared"}
TUNE: Mapping[str, Mapping[str, Any]] = {
    "cls-base": {"head": "cls"},
    "cls-rd.5": {"head": "cls", "consistency": 0.5},
    "cls-rd1.5": {"head": "cls", "consistency": 1.5},
    "cls-ls": {"head": "cls", "label_smoothing": 0.1},
    "cls-lr3": {"head": "cls", "consistency": 0.5, "learning_rate": 3e-4},
    "cls-lr1": {"head": "cls", "consistency": 0.5, "learning_rate": 1e-4},
    "ng-rd.5": {"consistency": 0.5},
    "ng-nores": {"consistency": 0.5, "residual": False},
    "ng-h4": {"consistency": 0.5, "game": {**LINEAR, "heads": 4, "head_dim": 64}},
    "ng-dense": {"consistency": 0.5, "game": {"draws": "shared", "couplings": "dense"}},
    "ng-nospecial": {"consistency": 0.5, "game": {**LINEAR, "special_tokens": False}},
    "mean-rd.5": {"head": "mean", "consistency": 0.5},
}
# Training files of the rows that learn from a teacher, as in the recipes distil and taught.
TAUGHT = ("snli_train", *("mnli_train",) * 4)
# Options of single rows that learn from a teacher, besides the recipe taught.
TAUGHT_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "neurogame": {"game": {**LINEAR, "heads": 4, "head_dim": 96}},
    "grounded": {"settle": 1},
}
# Short runs of the recipe distil: does dropout help when few rows are seen twice?
PILOTS: Mapping[str, Mapping[str, Any]] = {
    "dropout": {"dropout": 0.1, "encoder_dropout": 0.1},
    "without": {"dropout": 0.0, "encoder_dropout": 0.0},
}
PILOT_STEPS = 1500


@dataclass(frozen=True)
class Stage:
    """A stage: what it is, its jobs for given seeds and the folder of earlier stages, the sets they are scored on, and
    the number of test texts on which the trained layer is read (`layer_reading`).
    """

    summary: str
    jobs: Callable[[Sequence[int], Path], list[Job]]
    sets: Sequence[str] = (DEV, *TESTS)
    read: int = 0


def _teacher(runs: Path) -> dict[str, Any]:
    return {"teacher": str(runs / "teacher" / "teacher-0")}


def _joint(runs: Path, seed: int) -> dict[str, Any]:
    return {"encoder": str(runs / "distil" / f"joint-{seed}")}


def _base(seeds: Sequence[int], runs: Path) -> list[Job]:
    return [Job("mpnet", "mpnet"), *(Job(model, model, seed=seed) for model in ("esim", "dam") for seed in seeds)]


def _heads(seeds: Sequence[int], runs: Path) -> list[Job]:
    return [Job(head, file, changes, seed) for head, (file, changes) in HEADS.items() for seed in seeds]


def _pilot(seeds: Sequence[int], runs: Path) -> list[Job]:
    short = {"steps": PILOT_STEPS, **_teacher(runs)}
    return [Job(name, "distil", {**short, **changes}, 0, TAUGHT) for name, changes in PILOTS.items()]


def _apart(seeds: Sequence[int], runs: Path) -> list[Job]:
    from spinformer.models.pooling import POOLING_HEADS

    return [
        Job(head, "distil", {**_teacher(runs), **_joint(runs, seed)}, seed, TAUGHT, part=True)
        for head in POOLING_HEADS["joint"].parts
        for seed in seeds
    ]


def _taught(seeds: Sequence[int], runs: Path) -> list[Job]:
    options = {**read_yaml(RECIPES / "nli" / "taught.yaml", bases=False), **_teacher(runs)}
    del options["train"]
    return [
        Job(head, file, {**options, **changes, **_joint(runs, seed), **TAUGHT_CHANGES.get(head, {})}, seed, TAUGHT)
        for head, (file, changes) in HEADS.items()
        for seed in seeds
    ]


SINGLE = {"head": "cls", "first": "hypothesis", "epochs": 2, "consistency": 0.0}
STAGES: Mapping[str, Stage] = {
    "tune": Stage(
        "the search for a recipe, on the development set",
        lambda seeds, runs: [Job(name, "default", {**START, **changes}) for name, changes in TUNE.items()],
        (DEV,),
    ),
    "base": Stage("the larger encoder, one seed, and the two models on word vectors", _base),
    "heads": Stage("every pooling head by one recipe", _heads),
    "teacher": Stage(
        "the larger encoder with the first token's vector",
        lambda seeds, runs: [Job("teacher", "mpnet", {"head": "cls"})],
    ),
    "pilot": Stage("short runs of distil, on the development set", _pilot, (DEV,)),
    "distil": Stage(
        "encoders that learn from the teacher under four pooling heads at once",
        lambda seeds, runs: [Job("joint", "distil", _teacher(runs), seed, TAUGHT) for seed in seeds],
    ),
    "apart": Stage("each of the four pooling heads of distil alone, without more training", _apart),
    "taught": Stage("every pooling head, trained anew on the encoders of distil, with the teacher", _taught),
    "single": Stage(
        "a classifier of the hypothesis alone, not scored",
        lambda seeds, runs: [Job("hypothesis", "default", SINGLE)],
        (),
    ),
    "paper": Stage(
        "the NeuroGame paper's recipe at 8 times its batch: four pooling heads, two encoders",
        nli_paper.paper_jobs,
        nli_paper.SETS,
        nli_paper.READ_TEXTS,
    ),
    "literal": Stage(
        "the NeuroGame paper's recipe at its own batch, which takes 8 times as many updates",
        nli_paper.literal_jobs,
        nli_paper.SETS,
        nli_paper.READ_TEXTS,
    ),
    "ablations": Stage(
        "the paper's layer with one change at a time, one epoch",
        nli_paper.ablation_jobs,
        nli_paper.SETS,
        nli_paper.READ_TEXTS,
    ),
}


def summarize(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All runs of a stage from their records, and the mean accuracy of each row over its seeds, in percent."""
    rows = []
    for record in runs:
        outcome = record["outcome"]
        scores = {
            name: {
                "accuracy": evaluation["scores"]["accuracy"],
                "interval": evaluation["scores"]["interval"],
                "macro_f1": evaluation["scores"]["macro_f1"],
                "ece": evaluation["scores"]["ece"],
                "names": evaluation["scores"]["names"],
                "confusion": evaluation["scores"]["confusion"],
                "count": evaluation["count"],
                "game": evaluation["game"],
            }
            for name, evaluation in outcome["scores"].items()
        }
        rows.append({**outcome, "scores": scores, "recipe": record["config"]["recipe"], "written": record["written"]})
    return {"runs": rows, "means": mean_accuracies(rows)}


def mean_accuracies(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Accuracy of each row on each set, in percent, averaged over its seeds."""
    means = {}
    for name in dict.fromkeys(run["job"] for run in runs):
        seeds = [run["scores"] for run in runs if run["job"] == name]
        means[name] = {key: 100 * fmean(scores[key]["accuracy"] for scores in seeds) for key in seeds[0]}
    return means
