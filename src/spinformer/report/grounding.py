"""Tables of docs/grounding.md: the search for a form, explanations beside each other, how well the game fits."""

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from spinformer.report.markdown import Record, markdown

COLUMNS = {
    "comprehensiveness": "comprehensiveness ↑",
    "sufficiency": "sufficiency ↓",
    "leave_one_out_spearman": "with leave-one-out ↑",
}


def forms(record: Record) -> str:
    """What the search for a form changed, and what it gave on development texts."""
    lines = []
    for run in record["outcome"]["runs"]:
        (found,) = run["methods"].values()
        cells = [f"{found[metric]['mean']:.3f}" for metric in ("comprehensiveness", "sufficiency")]
        lines.append([run["form"], f"{run['fit']['pooled']:.3f}", f"{run['fit']['within']:.3f}", *cells])
    return markdown(["changed", "R² of v(C) ↑", "within texts ↑", *list(COLUMNS.values())[:2]], lines)


def methods(record: Record) -> str:
    """Every method on the same model and texts, the most comprehensive first."""
    runs = record["outcome"]["runs"]
    names = {name for run in runs for name in run["faithfulness"]["methods"]}

    def own(name: str) -> list[Record]:
        return [run["faithfulness"]["methods"][name] for run in runs if name in run["faithfulness"]["methods"]]

    def steady(name: str) -> list[Any]:
        tables = [run["stability"]["methods"] for run in runs if "stability" in run]
        return [table[name]["stability"]["mean"] for table in tables if name in table]

    lines = []
    for name in sorted(names, key=lambda name: -fmean(row["comprehensiveness"]["mean"] for row in own(name))):
        rows = own(name)
        cells = [_over([row[metric]["mean"] for row in rows]) for metric in COLUMNS]
        passes, milliseconds = (fmean(row[what] for row in rows) for what in ("passes", "milliseconds"))
        lines.append(
            [
                name,
                *cells,
                _over(steady(name)),
                f"{passes:.0f}",
                f"{milliseconds:.2g}" if milliseconds < 10 else f"{milliseconds:.0f}",
                len(rows),
            ]
        )
    header = ["method", *COLUMNS.values(), "stability ↑", "passes", "ms a text", "seeds"]
    return markdown(header, lines)


def highlights(record: Record) -> str:
    """Average precision on the words that people marked, of the methods of one pass."""
    runs = [run["highlights"]["methods"] for run in record["outcome"]["runs"] if "highlights" in run]
    names = {name for run in runs for name in run}
    found = {name: [run[name]["highlight_agreement"]["mean"] for run in runs if name in run] for name in names}
    order = sorted(found, key=lambda name: -fmean(found[name]))
    return markdown(["method", "average precision ↑", "seeds"], [[n, _over(found[n]), len(found[n])] for n in order])


def fit(record: Record) -> str:
    """How well the game is the classifier's own, and whether its Ising model can be trusted."""
    runs = record["outcome"]["runs"]
    pairs = [run["interactions"] for run in runs if "interactions" in run]
    lines = [
        ["R² of v(C) on unseen texts and coalitions", _over([run["fit"]["pooled"] for run in runs])],
        ["the same about each text's own mean", _over([run["fit"]["within"] for run in runs])],
    ]
    if pairs:
        lines.append(
            [
                f"interactions, correlation with the real ones over {pairs[0]['pairs']} pairs of words",
                _over([found["pearson"]["pooled"] for found in pairs]),
            ]
        )
    lines.append(["mean field converged", _over([run["diagnostics"]["converged"] for run in runs], ".4f")])
    return markdown(["", "value"], lines)


def ess(record: Record) -> str:
    """Of each game: effective sample size under Gibbs weights as a part of K, and convergence of the mean field."""
    lines = []
    for run in record["outcome"]["runs"]:
        found = run["diagnostics"]
        cells = [f"{found['ess_mean']:.3f}", f"{found['ess_least']:.3f}", f"{found['converged']:.2%}"]
        lines.append([run["seed"], f"{found['ess_texts']:,}", *cells])
    return markdown(["seed", "texts", "mean", "least of all texts", "mean field converged"], lines)


def _over(found: Sequence[Any], spec: str = ".3f") -> str:
    """Mean over seeds, and standard deviation where there are several; empty where it is not defined."""
    numbers = [number for number in found if number is not None]
    if not numbers:
        return ""
    return format(fmean(numbers), spec) + (f" ± {format(stdev(numbers), spec)}" if len(numbers) > 1 else "")
