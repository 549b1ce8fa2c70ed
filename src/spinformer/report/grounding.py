"""Tables of docs/grounding.md: explanations beside each other, and how well the game fits."""

from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any

from spinformer.report.markdown import Record, markdown

COLUMNS = {
    "comprehensiveness": "comprehensiveness ↑",
    "sufficiency": "sufficiency ↓",
    "leave_one_out_spearman": "with leave-one-out ↑",
    "stability": "stability ↑",
}


def _over(runs: list[Record], value: Callable[[Record], Any], spec: str = ".3f") -> str:
    """Mean over seeds, and standard deviation where there are several; empty where it is not defined."""
    found = [number for run in runs if (number := value(run)) is not None]
    if not found:
        return ""
    return format(fmean(found), spec) + (f" ± {format(stdev(found), spec)}" if len(found) > 1 else "")


def methods(record: Record) -> str:
    """Every method on the same model and texts, the most comprehensive first."""
    runs = record["outcome"]["runs"]

    def value(run: Record, method: str, metric: str) -> Any:
        return run["faithfulness"]["methods"][method][metric]["mean"]

    names = sorted(
        runs[0]["faithfulness"]["methods"],
        key=lambda name: -fmean(value(run, name, "comprehensiveness") for run in runs),
    )
    lines = []
    for name in names:
        cells = [_over(runs, lambda run, m=metric, n=name: value(run, n, m)) for metric in COLUMNS]  # type: ignore[misc]
        spent = [
            fmean(run["faithfulness"]["methods"][name][what] for run in runs) for what in ("passes", "milliseconds")
        ]
        lines.append([name, *cells, f"{spent[0]:.0f}", f"{spent[1]:.0f}"])
    return markdown(["method", *COLUMNS.values(), "masked passes", "ms a text"], lines)


def fit(record: Record) -> str:
    """How well the game is the classifier's own, and whether its Ising model can be trusted."""
    runs = record["outcome"]["runs"]
    lines = [
        ["R² of v(C) on unseen texts and coalitions", _over(runs, lambda run: run["fit"]["pooled"])],
        ["the same about each text's own mean", _over(runs, lambda run: run["fit"]["within"])],
        [
            f"interactions, correlation over {runs[0]['interactions']['pairs']} pairs of words",
            _over(runs, lambda run: run["interactions"]["pearson"]["pooled"]),
        ],
        ["effective sample size, part of K, mean", _over(runs, lambda run: run["diagnostics"]["ess_mean"])],
        ["effective sample size, part of K, least", _over(runs, lambda run: run["diagnostics"]["ess_least"])],
        ["mean field converged", _over(runs, lambda run: run["diagnostics"]["converged"], ".4f")],
    ]
    return markdown(["", "value"], lines)
