"""The runs behind docs/nli.md: which recipes, which seeds, scored on which sets."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from spinformer.experiments.nli import CONFIGS, DEV, TESTS, Job
from spinformer.training.recipe import read_yaml

SEEDS = (0, 1, 2)
# Rows of the table that are trained by one recipe, with the file in configs/nli of each.
HEADS = {
    "neurogame": "default",
    "cls": "cls",
    "mean": "mean",
    "attention": "attention",
    "released": "released",
    "paper": "paper-layer",
    "grounded": "grounded",
}
# What the first search held fixed: the default recipe before it.
START: Mapping[str, Any] = {
    "epochs": 3,
    "batch_size": 128,
    "learning_rate": 2e-4,
    "consistency": 0.0,
    "residual": True,
}
# What the rows that learn from a teacher see, as configs/nli/distil.yaml and taught.yaml have it.
TAUGHT = ("snli_train", *("mnli_train",) * 4)
LINEAR: Mapping[str, Any] = {"couplings": "linear", "draws": "shared"}


def _tune(name: str, config: str = "default", **changes: Any) -> Job:
    return Job(name, config, {**START, **changes})


TUNE = (
    _tune("cls-base", "cls"),
    _tune("cls-rd.5", "cls", consistency=0.5),
    _tune("cls-rd1.5", "cls", consistency=1.5),
    _tune("cls-ls", "cls", label_smoothing=0.1),
    _tune("cls-lr3", "cls", consistency=0.5, learning_rate=3e-4),
    _tune("cls-lr1", "cls", consistency=0.5, learning_rate=1e-4),
    _tune("ng-rd.5", consistency=0.5),
    _tune("ng-nores", consistency=0.5, residual=False),
    _tune("ng-h4", consistency=0.5, game={**LINEAR, "heads": 4, "head_dim": 64}),
    _tune("ng-dense", consistency=0.5, game={"draws": "shared", "couplings": "dense"}),
    _tune("ng-nospecial", consistency=0.5, game={**LINEAR, "special_tokens": False}),
    _tune("mean-rd.5", "mean", consistency=0.5),
)


# Where in the encoder the game is played, by the default recipe: with layers below the last, of six; with more heads.
WHERE: Mapping[str, Mapping[str, Any]] = {
    "last": {},
    "last-embeddings": {"layers": [0]},
    "last-middle": {"layers": [3]},
    "last-middle-embeddings": {"layers": [0, 3]},
    "last-heads": {"game": {**LINEAR, "heads": 4, "head_dim": 96}},
    "last-middle-embeddings-heads": {"layers": [0, 3], "game": {**LINEAR, "heads": 4, "head_dim": 96}},
}


# What rows that learn from a teacher have besides configs/nli/taught.yaml.
OWN: Mapping[str, Mapping[str, Any]] = {
    "neurogame": {"game": {**LINEAR, "heads": 4, "head_dim": 96}},
    "grounded": {"settle": 1},
}
# What is tried of configs/nli/distil.yaml, in short runs: whether dropout helps where rows are hardly seen twice.
PILOTS: Mapping[str, Mapping[str, Any]] = {
    "dropout": {"dropout": 0.1, "encoder_dropout": 0.1},
    "without": {"dropout": 0.0, "encoder_dropout": 0.0},
}
PILOT_STEPS = 1500


def stage(
    name: str, seeds: Sequence[int] = SEEDS, runs: Path = Path("runs/nli")
) -> tuple[Sequence[Job], Sequence[str]]:
    """Jobs and sets of a stage: "tune" (the search) and "where" (what the game reads), both on the development set
    alone; "base" (the larger encoder, one seed, and the two models on word vectors), "teacher" (the larger encoder with
    the plainest head), "pilot" (short runs of "distil", on the development set alone), "distil" (encoders that learn
    from the teacher under all heads at once), "apart" (each of these heads alone, as it is), "taught" (every head anew
    on these encoders, with the teacher), "gate" (parts of texts drawn by the game's own attention), "single" (a
    classifier of the hypothesis alone) or "heads" (every head). runs: the folder of earlier stages.
    """
    everything = (DEV, *TESTS)
    if name == "teacher":
        return [Job("teacher", "mpnet", {"head": "cls"})], everything
    if name == "gate":
        return [Job(name, "grounded", {"gate": True})], everything
    if name == "single":
        alone = {"first": "hypothesis", "epochs": 2, "consistency": 0.0}
        return [Job("hypothesis", "cls", alone)], ()
    if name == "tune":
        return TUNE, (DEV,)
    if name == "where":
        return [Job(where, "default", changed) for where, changed in WHERE.items()], (DEV,)
    if name == "base":
        words = [Job(model, model, seed=seed) for model in ("esim", "dam") for seed in seeds]
        return [Job("mpnet", "mpnet"), *words], everything
    teacher = {"teacher": str(runs / "teacher" / "teacher-0")}
    if name == "pilot":
        short = {"steps": PILOT_STEPS, **teacher}
        return [Job(pilot, "distil", {**short, **changed}, 0, TAUGHT) for pilot, changed in PILOTS.items()], (DEV,)
    if name == "distil":
        return [Job("joint", "distil", teacher, seed, TAUGHT) for seed in seeds], everything
    joint = {seed: {"encoder": str(runs / "distil" / f"joint-{seed}")} for seed in seeds}
    if name == "apart":
        from spinformer.models.neurogame.heads import JOINT

        return [
            Job(head, "distil", {**teacher, **joint[seed]}, seed, TAUGHT, part=True) for head in JOINT for seed in seeds
        ], everything
    if name == "taught":
        options = {**read_yaml(CONFIGS / "taught.yaml", bases=False), **teacher}
        del options["train"]
        return [
            Job(head, file, {**options, **joint[seed], **OWN.get(head, {})}, seed, TAUGHT)
            for head, file in HEADS.items()
            for seed in seeds
        ], everything
    return [Job(head, file, seed=seed) for head, file in HEADS.items() for seed in seeds], everything


def summary(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All runs of a stage, and the mean accuracy of each row over its seeds, in percent."""
    runs = []
    for record in records:
        outcome = record["outcome"]
        scores = {
            name: {
                "accuracy": found["scores"]["accuracy"],
                "interval": found["scores"]["interval"],
                "macro_f1": found["scores"]["macro_f1"],
                "ece": found["scores"]["ece"],
                "count": found["count"],
                "game": found["game"],
            }
            for name, found in outcome["scores"].items()
        }
        runs.append({**outcome, "scores": scores, "recipe": record["config"]["recipe"], "written": record["written"]})
    return {"runs": runs, "means": means(runs)}


def means(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Accuracy of each row on each set, in percent, over its seeds."""
    found = {}
    for name in dict.fromkeys(run["job"] for run in runs):
        own = [run for run in runs if run["job"] == name]
        found[name] = {key: 100 * fmean(run["scores"][key]["accuracy"] for run in own) for key in own[0]["scores"]}
    return found
