"""Tables of docs/nli.md: classifiers trained here, the search for a recipe, and the paper's Table 5."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from spinformer.report.markdown import Record, markdown

SETS = {
    "snli_test": "SNLI test",
    "mnli_dev_matched": "MNLI matched",
    "breaking_nli": "Breaking NLI",
    "monli": "MoNLI",
    "hans_regenerated": "HANS (regenerated)",
    "sick_test": "SICK test",
}
NAMES = {
    "neurogame": "NeuroGame, `default`",
    "paper": "NeuroGame, `paper` layer",
    "cls": "first token (CLS)",
    "mean": "mean",
    "attention": "softmax attention pooling",
    "released": "the authors' released head",
    "grounded": "first token, with a game (`grounded`)",
    "joint": "four heads at once (`joint`)",
    "teacher": "first token (CLS), on all-mpnet-base-v2",
    "mpnet": "NeuroGame, `default`, on all-mpnet-base-v2",
    "dam": "DAM, GloVe 100d",
    "esim": "ESIM, GloVe 100d",
}
# Heads that NeuroGame is held against.
OTHERS = ("cls", "mean", "attention")
# Two-sided 95% points of Student's t for 1, 2, 3 ... degrees of freedom.
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
# Table 5 of the NeuroGame paper, as printed there.
TABLE_5 = (
    ("DAM", 83.30, 68.41, "382K"),
    ("ESIM", 87.00, 76.63, "4.3M"),
    ("BERT-Base", 88.86, 80.99, "110M"),
    ("BERT-Large", 90.33, 84.83, "340M"),
    ("RoBERTa-Base", 86.95, 85.98, "125M"),
    ("RoBERTa-Large", 91.83, 90.20, "355M"),
    ("ALBERT-Base", 86.49, 79.89, "11M"),
    ("ALBERT-Large", 90.85, 86.76, "17M"),
    ("NGT", 86.60, 79.00, "110M"),
)


def rows(record: Record) -> dict[str, list[Record]]:
    """Runs by row, in the order of NAMES."""
    runs = record["outcome"]["runs"]
    return {name: found for name in NAMES if (found := [run for run in runs if run["job"] == name])}


def accuracies(runs: Sequence[Record], name: str) -> list[float]:
    """In percent, one a seed."""
    return [100 * run["scores"][name]["accuracy"] for run in runs]


def classifiers(*records: Record) -> str:
    """Mean and standard deviation over seeds, on every set; what learnt from a teacher says so."""

    def cell(runs: Sequence[Record], name: str) -> str:
        found = accuracies(runs, name)
        return f"{fmean(found):.2f}" + (f" ± {stdev(found):.2f}" if len(found) > 1 else "")

    lines = [
        [
            NAMES[name] + (", taught" if runs[0]["recipe"].get("teacher") else ""),
            *(cell(runs, column) for column in SETS),
            f"{runs[0]['parameters'] / 1e6:.1f}M",
            f"{runs[0]['pairs']:,}",
            f"{fmean(run['train_seconds'] for run in runs):.0f} s",
            len(runs),
        ]
        for record in records
        for name, runs in rows(record).items()
    ]
    return markdown(["model", *SETS.values(), "parameters", "pairs", "training", "seeds"], lines)


def difference(record: Record) -> str:
    """NeuroGame against each other head: difference of the means, with its 95% interval over seeds (Welch's)."""

    def spread(a: Sequence[float], b: Sequence[float]) -> float:
        one, other = (stdev(found) ** 2 / len(found) for found in (a, b))
        freedom = (one + other) ** 2 / (one**2 / (len(a) - 1) + other**2 / (len(b) - 1))
        return student(freedom) * math.sqrt(one + other)

    return _against(record, spread)


def student(freedom: float) -> float:
    """The 95% point for so many degrees of freedom, at least 1; between whole numbers on a line, which errs to the safe
    side, as the last of the table does for more."""
    below = min(math.floor(freedom), len(STUDENT))
    above = min(below + 1, len(STUDENT))
    return STUDENT[below - 1] + (freedom - math.floor(freedom)) * (STUDENT[above - 1] - STUDENT[below - 1])


def paired(record: Record) -> str:
    """The same where the runs of one seed share their encoder: the interval is of the differences seed by seed."""
    found = {name: sorted(run["seed"] for run in runs) for name, runs in rows(record).items()}
    for name in OTHERS:
        if found[name] != found["neurogame"]:
            got = f"{found['neurogame']} of neurogame and {found[name]} of {name}"
            raise ValueError(f"expected the same seeds of both heads; got {got}")

    def spread(a: Sequence[float], b: Sequence[float]) -> float:
        apart = [x - y for x, y in zip(a, b, strict=True)]
        return student(len(apart) - 1) * stdev(apart) / math.sqrt(len(apart))

    return _against(record, spread)


def _against(record: Record, spread: Callable[[Sequence[float], Sequence[float]], float]) -> str:
    columns = {"snli_dev": "SNLI dev", **SETS}
    found = {name: sorted(runs, key=lambda run: run["seed"]) for name, runs in rows(record).items()}
    lines = []
    for name in OTHERS:
        cells = []
        for column in columns:
            a, b = (accuracies(found[one], column) for one in ("neurogame", name))
            cells.append(f"{fmean(a) - fmean(b):+.2f} ± {spread(a, b):.2f}")
        lines.append([f"NeuroGame less {NAMES[name]}", *cells])
    return markdown(["", *columns.values()], lines)


def search(record: Record) -> str:
    """The search for a recipe: what each run changed, and its accuracy on SNLI dev."""
    shown = ("head", "consistency", "learning_rate", "label_smoothing", "residual")
    lines = []
    for run in record["outcome"]["runs"]:
        recipe = run["recipe"]
        game = {key: value for key, value in recipe["game"].items() if key != "draws"}
        options = ", ".join(f"{key} {value}" for key, value in game.items()) if recipe["head"] == "neurogame" else ""
        accuracy = f"{100 * run['scores']['snli_dev']['accuracy']:.2f}"
        lines.append([recipe["head"], *(recipe[name] for name in shown[1:]), options, accuracy])
    return markdown([*shown, "game", "SNLI dev"], lines)


def table_5(record: Record) -> str:
    """As the paper prints it; nothing in it was measured here."""
    return markdown(
        ["model", "SNLI", "MNLI matched", "parameters"], [[n, f"{s:.2f}", f"{m:.2f}", p] for n, s, m, p in TABLE_5]
    )
