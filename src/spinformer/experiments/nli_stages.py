"""The runs behind docs/nli.md: which recipes, which seeds, scored on which sets."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from spinformer.experiments.nli import CONFIGS, DEV, TESTS, Job
from spinformer.training.recipe import read_yaml

SEEDS = 3
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
# What the taught rows learn from, as configs/nli/distil.yaml has it.
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


# What stage "taught" tries of each row with seed 0, two runs for each; the better on the development set goes on with
# the other seeds. Four heads were chosen in an earlier search with a teacher (docs/nli.md).
WITHOUT: Mapping[str, Any] = {"dropout": 0.0, "encoder_dropout": 0.0}
FOUR: Mapping[str, Any] = {"game": {**LINEAR, "heads": 4, "head_dim": 96}}
LIGHT: Mapping[str, Any] = {"masked_weight": 0.1}
VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "neurogame": (FOUR, {**FOUR, **WITHOUT}),
    "cls": ({}, WITHOUT),
    "mean": ({}, WITHOUT),
    "attention": ({}, WITHOUT),
    "grounded": (LIGHT, {**LIGHT, **WITHOUT}),
    "released": ({}, WITHOUT),
    "paper": ({}, WITHOUT),
}


def stage(name: str, seeds: int = SEEDS) -> tuple[Sequence[Job], Sequence[str]]:
    """Jobs and sets of a stage: "tune" (the search, on the development set alone), "base" (the larger encoder, one
    seed, and the two models on word vectors), "teacher" (the larger encoder with the plainest head), "gate" (parts of
    texts drawn by the game's own attention), "single" (a classifier of the hypothesis alone) or "heads" (every head on
    the same encoder)."""
    if name == "teacher":
        return [Job("teacher", "mpnet", {"head": "cls"})], (DEV, *TESTS)
    if name == "gate":
        return [Job(name, "grounded", {"gate": True})], (DEV, *TESTS)
    if name == "single":
        alone = {"first": "hypothesis", "epochs": 2, "consistency": 0.0}
        return [Job("hypothesis", "cls", alone)], ()
    if name == "tune":
        return TUNE, (DEV,)
    if name == "base":
        words = [Job(model, model, seed=seed) for model in ("esim", "dam") for seed in range(seeds)]
        return [Job("mpnet", "mpnet"), *words], (DEV, *TESTS)
    return [Job(head, file, seed=seed) for head, file in HEADS.items() for seed in range(seeds)], (DEV, *TESTS)


def taught(teacher: str, chosen: Mapping[str, int] | None = None, seeds: int = SEEDS) -> list[Job]:
    """Every row of the table learning from the teacher: all variants with seed 0, or those `chosen` with the others."""
    options = read_yaml(CONFIGS / "distil.yaml", bases=False)
    options.pop("train")
    jobs = []
    for row, variants in VARIANTS.items():
        for place, variant in enumerate(variants):
            if chosen is not None and chosen.get(row) != place:
                continue
            changes = {**options, "teacher": teacher, **variant}
            config = HEADS.get(row, row)
            own = [0] if chosen is None else range(1, seeds)
            jobs += [Job(f"{row}.{place}", config, changes, seed, TAUGHT) for seed in own]
    return jobs


def choose(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The variant of each row that did best on the development set, from the runs with seed 0."""
    best: dict[str, tuple[float, int]] = {}
    for record in records:
        outcome = record["outcome"]
        row, _, place = outcome["job"].rpartition(".")
        found = (outcome["scores"][DEV]["scores"]["accuracy"], -int(place))  # of equal ones the first
        if outcome["seed"] == 0:
            best[row] = max(best.get(row, found), found)
    return {row: -place for row, (_, place) in best.items()}


def taught_summary(records: Sequence[Mapping[str, Any]], chosen: Mapping[str, int]) -> dict[str, Any]:
    """`summary` of the chosen variants, each under the name of its row, with what all of them reached on dev."""
    kept, tried = [], []
    for record in records:
        row, _, place = record["outcome"]["job"].rpartition(".")
        score = record["outcome"]["scores"][DEV]["scores"]["accuracy"]
        if record["outcome"]["seed"] == 0:
            changed = VARIANTS[row][int(place)]
            tried.append({"row": row, "changed": changed, "dev": 100 * score, "chosen": chosen[row] == int(place)})
        if chosen[row] == int(place):
            kept.append({**record, "outcome": {**record["outcome"], "job": row}})
    return {**summary(kept), "tried": tried}


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
    means: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(run["job"] for run in runs):
        own = [run for run in runs if run["job"] == name]
        sets = own[0]["scores"]
        means[name] = {key: 100 * fmean(run["scores"][key]["accuracy"] for run in own) for key in sets}
    return {"runs": runs, "means": means}
