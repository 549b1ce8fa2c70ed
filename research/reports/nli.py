"""Tables of docs/nli.md: classifiers trained here, the search for a recipe, and Table 5 of the NeuroGame paper."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev

from research.reports.markdown import Record, markdown

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
# Parameters of the two encoders, without a pooler; rows without an encoder.
ENCODERS = {"minilm": 22_565_376, "mpnet": 108_895_872}
WORD_VECTORS = ("dam", "esim")
# Training pairs of SNLI and of MNLI as published.
CORPORA = 550_152 + 392_702
# Pooling heads that NeuroGame is compared with.
OTHERS = ("cls", "mean", "attention")
EVAL_SAMPLES = 25  # K in evaluation, where a recipe does not name it
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


def runs_by_row(record: Record) -> dict[str, list[Record]]:
    """The runs of each row, in the order of NAMES."""
    runs = record["outcome"]["runs"]
    return {name: group for name in NAMES if (group := [run for run in runs if run["job"] == name])}


def accuracies(runs: Sequence[Record], name: str) -> list[float]:
    """Accuracy of each run on the set `name`, in percent."""
    return [100 * run["scores"][name]["accuracy"] for run in runs]


def classifiers(*records: Record) -> str:
    """Mean and standard deviation over seeds, on every set; rows that learnt from a teacher are marked."""

    def cell(runs: Sequence[Record], name: str) -> str:
        values = accuracies(runs, name)
        return f"{fmean(values):.2f}" + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")

    lines = [
        [
            NAMES[name] + (", taught" if runs[0]["recipe"].get("teacher") else ""),
            *(cell(runs, column) for column in SETS),
            f"{runs[0]['parameters'] / 1e6:.1f}M",
            _added(runs[0]),
            effective_samples(runs),
            f"{runs[0]['pairs']:,} ({runs[0]['pairs'] / CORPORA:.0%})",
            f"{fmean(run['train_seconds'] for run in runs):.0f} s",
            len(runs),
        ]
        for record in records
        for name, runs in runs_by_row(record).items()
    ]
    return markdown(["model", *SETS.values(), "parameters", "added", "ESS", "pairs", "training", "seeds"], lines)


def _added(run: Record) -> str:
    """Parameters beside the encoder's."""
    if run["job"] in WORD_VECTORS:
        return ""
    encoder = ENCODERS["mpnet" if run["recipe"]["encoder"] == "mpnet" else "minilm"]
    return f"{run['parameters'] - encoder:,}"


def effective_samples(runs: Sequence[Record]) -> str:
    """Effective sample size of the NeuroGame layer on SNLI test, of its K coalitions."""
    games = [run["scores"]["snli_test"].get("game") for run in runs]
    if any(game is None for game in games):
        return ""
    samples = runs[0]["recipe"]["game"].get("eval_samples", EVAL_SAMPLES)
    return f"{fmean(game['ess_mean'] for game in games):.1f} of {samples}"


def difference(record: Record) -> str:
    """NeuroGame less each other pooling head: difference of the means with its 95% interval over seeds (Welch's t)."""
    return _differences(record, welch)


def welch(a: Sequence[float], b: Sequence[float]) -> float:
    """Half of the 95% interval of the difference of two means, by Welch's t; two numbers or more of each."""
    one, other = (stdev(values) ** 2 / len(values) for values in (a, b))
    freedom = (one + other) ** 2 / (one**2 / (len(a) - 1) + other**2 / (len(b) - 1))
    return student(freedom) * math.sqrt(one + other)


def student(freedom: float) -> float:
    """The two-sided 95% point for this many degrees of freedom, at least 1.

    Interpolated linearly between whole numbers; the last entry of the table serves for more. Both err on the safe side.
    """
    below = min(math.floor(freedom), len(STUDENT))
    above = min(below + 1, len(STUDENT))
    return STUDENT[below - 1] + (freedom - math.floor(freedom)) * (STUDENT[above - 1] - STUDENT[below - 1])


def paired(record: Record) -> str:
    """The same for runs that share one encoder per seed: the interval of the differences, seed by seed."""
    seeds = {name: sorted(run["seed"] for run in runs) for name, runs in runs_by_row(record).items()}
    for name in OTHERS:
        if seeds[name] != seeds["neurogame"]:
            got = f"{seeds['neurogame']} of neurogame and {seeds[name]} of {name}"
            raise ValueError(f"expected the same seeds of both heads; got {got}")

    def half_width(a: Sequence[float], b: Sequence[float]) -> float:
        differences = [x - y for x, y in zip(a, b, strict=True)]
        return student(len(differences) - 1) * stdev(differences) / math.sqrt(len(differences))

    return _differences(record, half_width)


def _differences(record: Record, half_width: Callable[[Sequence[float], Sequence[float]], float]) -> str:
    columns = {"snli_dev": "SNLI dev", **SETS}
    rows = {name: sorted(runs, key=lambda run: run["seed"]) for name, runs in runs_by_row(record).items()}
    lines = []
    for name in OTHERS:
        cells = []
        for column in columns:
            a, b = (accuracies(rows[row], column) for row in ("neurogame", name))
            cells.append(f"{fmean(a) - fmean(b):+.2f} ± {half_width(a, b):.2f}")
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


def small(record: Record) -> str:
    """The variants of the small classifier, as they are stored; the one in the package is in bold."""
    outcome = record["outcome"]
    rows = []
    for name, variant in outcome["variants"].items():
        mark = "**" if name == outcome["chosen"] else ""
        scores = [f"{100 * variant['scores'][key]['accuracy']:.2f}" for key in ("snli_dev", *list(SETS)[:2])]
        before = f"{100 * variant['before_rounding']['snli_dev']:.2f}"
        size, parameters = f"{variant['bytes'] / 1e6:.1f}", f"{variant['parameters'] / 1e6:.1f}M"
        kept = ", ".join(str(layer + 1) for layer in record["config"][name]["layers"])
        rows.append([f"{mark}{kept}{mark}", parameters, size, before, *scores, f"{variant['fit']:.3f}"])
    header = ["layers", "parameters", "MB", "SNLI dev in float32", "SNLI dev", "SNLI test", "MNLI matched", "fit"]
    return markdown(header, rows)


def table_5() -> str:
    """Table 5 as the paper prints it; nothing in it was measured here."""
    rows = [[model, f"{snli:.2f}", f"{mnli:.2f}", size] for model, snli, mnli, size in TABLE_5]
    return markdown(["model", "SNLI", "MNLI matched", "parameters"], rows)
