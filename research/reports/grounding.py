"""Tables of docs/grounding.md: forms of the game head, explanation methods compared, how well games fit."""

from collections.abc import Sequence
from statistics import fmean, stdev

from research.reports.markdown import Record, markdown

TASK_NAMES = {"sst2": "SST-2", "goemotions": "GoEmotions", "stsb": "STS-B", "imdb": "IMDB", "snli": "SNLI"}
MEASURES = {"accuracy": "accuracy", "f1": "F1", "pearson": "correlation"}
COLUMNS = {
    "comprehensiveness": "comprehensiveness ↑",
    "sufficiency": "sufficiency ↓",
    "leave_one_out_spearman": "with leave-one-out ↑",
}


def forms(record: Record) -> str:
    """The search for a form of the game head: what was changed, and the outcome on development texts."""
    lines = []
    for run in record["outcome"]["runs"]:
        (scores,) = run["methods"].values()
        cells = [f"{scores[metric]['mean']:.3f}" for metric in ("comprehensiveness", "sufficiency")]
        lines.append([run["form"], f"{run['fit']['pooled']:.3f}", f"{run['fit']['within']:.3f}", *cells])
    return markdown(["changed", "R² of v(C) ↑", "within texts ↑", *list(COLUMNS.values())[:2]], lines)


def methods(record: Record) -> str:
    """Every method on the same model and texts, the most comprehensive first."""
    runs = record["outcome"]["runs"]
    scores = _by_method([run["faithfulness"]["methods"] for run in runs])
    stability = _by_method([run["stability"]["methods"] for run in runs if "stability" in run])

    def comprehensiveness(name: str) -> float:
        return fmean(row["comprehensiveness"]["mean"] for row in scores[name])

    lines = []
    for name in sorted(scores, key=comprehensiveness, reverse=True):
        rows = scores[name]
        cells = [_over_seeds([row[metric]["mean"] for row in rows]) for metric in COLUMNS]
        passes, milliseconds = (fmean(row[cost] for row in rows) for cost in ("passes", "milliseconds"))
        lines.append(
            [
                name,
                *cells,
                _over_seeds([row["stability"]["mean"] for row in stability.get(name, [])]),
                f"{passes:.0f}",
                f"{milliseconds:.2g}" if milliseconds < 10 else f"{milliseconds:.0f}",
                len(rows),
            ]
        )
    header = ["method", *COLUMNS.values(), "stability ↑", "passes", "ms a text", "seeds"]
    return markdown(header, lines)


def highlights(record: Record) -> str:
    """Average precision on the words that people marked, of the methods of one pass or none."""
    scores = _by_method([run["highlights"]["methods"] for run in record["outcome"]["runs"] if "highlights" in run])
    precisions = {name: [row["highlight_agreement"]["mean"] for row in rows] for name, rows in scores.items()}
    order = sorted(precisions, key=lambda name: fmean(precisions[name]), reverse=True)
    lines = [[name, _over_seeds(precisions[name]), len(precisions[name])] for name in order]
    return markdown(["method", "average precision ↑", "seeds"], lines)


def fit(record: Record) -> str:
    """How closely the game follows the classifier, and whether its mean field converges."""
    runs = record["outcome"]["runs"]
    interactions = [run["interactions"] for run in runs if "interactions" in run]
    lines = [
        ["R² of v(C) on unseen texts and coalitions", _over_seeds([run["fit"]["pooled"] for run in runs])],
        ["the same about each text's own mean", _over_seeds([run["fit"]["within"] for run in runs])],
    ]
    if interactions:
        lines.append(
            [
                f"interactions, correlation with the real ones over {interactions[0]['pairs']} pairs of words",
                _over_seeds([row["pearson"]["pooled"] for row in interactions]),
            ]
        )
    lines.append(["mean field converged", _over_seeds([run["diagnostics"]["converged"] for run in runs], ".4f")])
    return markdown(["", "value"], lines)


def tasks(record: Record) -> str:
    """Classifiers of several tasks: how good they are, how well their games fit, and one pass beside KernelSHAP."""
    lines = []
    for name, task in record["outcome"]["tasks"].items():
        ((measure, quality),) = task["quality"].items()
        scores = task["faithfulness"]["methods"]
        one, many, single, chance = (
            scores[method]["comprehensiveness"]["mean"]
            for method in ("shapley", "kernel-shap", "leave-one-out", "random")
        )
        lines.append(
            [
                TASK_NAMES[name],
                f"{MEASURES[measure]} {quality:.3f}",
                f"{task['texts']:,}",
                f"{task['r2']:.3f}",
                f"{one:.3f}",
                f"{many:.3f} ({task['passes']:,})",
                f"{one / many:.3f}",
                f"{single:.3f}",
                f"{chance:.3f}",
                "" if task["seconds"] is None else f"{task['seconds']:.0f}",
            ]
        )
    header = ["task", "classifier", "texts grounded on", "R² of v(C) ↑", "one pass ↑", "KernelSHAP (passes) ↑"]
    return markdown([*header, "ratio", "leave-one-out ↑", "random", "seconds to ground"], lines)


def enough(*records: Record) -> str:
    """Games of ever more texts, one result for each classifier: their fit, the error of one pass, and their time."""
    lines = []
    for record in records:
        name = record["name"].rpartition("-")[2]
        for run in record["outcome"]["runs"]:
            numbers = [f"{number:.3f}" for number in (run["fit"]["pooled"], run["words"], run["pairs"])]
            lines.append(
                [TASK_NAMES[name], f"{run['texts']:,}", f"{run['passes']:,}", *numbers, f"{run['seconds']:.0f}"]
            )
    header = ["classifier", "texts", "masked passes", "R² of v(C) ↑", "error of words ↓", "error of pairs ↓", "seconds"]
    return markdown(header, lines)


def architectures(record: Record) -> str:
    """Small classifiers of every architecture: how good they are, how well their games fit, and one pass beside
    leave-one-out, which asks for each word.
    """
    lines = []
    for name, row in record["outcome"]["architectures"].items():
        scores = row["faithfulness"]["methods"]
        one, single, chance = (
            scores[method]["comprehensiveness"]["mean"] for method in ("shapley", "leave-one-out", "random")
        )
        cells = [f"{number:.3f}" for number in (row["accuracy"], row["r2"], one, single, chance)]
        lines.append([name, f"{row['parameters'] / 1e6:.1f}", *cells])
    header = ["architecture", "million weights", "accuracy", "R² of v(C) ↑", "one pass ↑", "leave-one-out ↑", "random"]
    return markdown(header, lines)


def ess(record: Record) -> str:
    """For each game: effective sample size under Gibbs weights as a part of K, and convergence of the mean field."""
    lines = []
    for run in record["outcome"]["runs"]:
        row = run["diagnostics"]
        cells = [f"{row['ess_mean']:.3f}", f"{row['ess_least']:.3f}", f"{row['converged']:.2%}"]
        lines.append([run["seed"], f"{row['ess_texts']:,}", *cells])
    return markdown(["seed", "texts", "mean", "least of all texts", "mean field converged"], lines)


def _by_method(runs: Sequence[Record]) -> dict[str, list[Record]]:
    """The rows of each method, one for each run that has it."""
    names = dict.fromkeys(name for run in runs for name in run)
    return {name: [run[name] for run in runs if name in run] for name in names}


def _over_seeds(values: Sequence[float | None], spec: str = ".3f") -> str:
    """Mean over seeds, with the standard deviation if there are several; empty if no value is defined."""
    numbers = [number for number in values if number is not None]
    if not numbers:
        return ""
    return format(fmean(numbers), spec) + (f" ± {format(stdev(numbers), spec)}" if len(numbers) > 1 else "")
