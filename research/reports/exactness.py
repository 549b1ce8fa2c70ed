"""Pictures and tables of exactness: how close explanations come to the classifier's exact values.

    python -m research.reports.exactness

draws docs/figures/exactness-NAME.svg from every research/results/exactness-NAME.json. Such a result is what `spinformer
evaluate MODEL DATA --explanations --exact COUNT --peers --name exactness-NAME` writes: its outcome has `exactness`. Or
it has `runs`, each with `exactness`, one for each grounding; then errors are means over them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from research.paths import DOCS, RESULTS
from research.reports.markdown import Record, markdown
from research.reports.results import read_result
from spinformer.evaluate.explanations.figures import error_figure
from spinformer.explain.render.canvas import save_figure

PREFIX = "exactness-"


def runs(record: Record) -> list[Record]:
    """What `Exactness.to_dict` gave, once for each grounding."""
    outcome = record["outcome"]
    return [run["exactness"] for run in outcome.get("runs", [outcome])]


def ours(record: Record) -> str:
    """Our methods by their passes: errors, coverage, and whether Shapley values add up."""
    found = runs(record)
    lines = []
    for name, row in found[0]["settings"].items():
        rows = [run["settings"][name] for run in found if name in run["settings"]]
        gaps = [one["additivity"] for one in rows if one["additivity"] is not None]
        shares = [_mean(rows, f"{part}.coverage.pooled", ".1%") for part in ("values", "pairs")]
        errors = [_mean(rows, f"{part}.error.mean", ".3f") for part in ("values", "pairs")]
        cells = [errors[0], shares[0], errors[1], shares[1]]
        lines.append([row["method"], _mean(rows, "passes.mean", ".0f"), *cells, f"{max(gaps):.0e}" if gaps else ""])
    header = ["method", "passes", "words: error", "in 95% interval", "pairs: error", "in 95% interval", "largest gap"]
    return markdown(header, lines)


def peers(record: Record) -> str:
    """shapiq's estimators, a column for each budget: the errors of words' values, then those of pairs."""
    rows = [row for run in runs(record)[:1] for row in run["peers"].values()]  # they do not depend on the grounding
    budgets = sorted({row["budget"] for row in rows})
    lines = []
    for part, kind in (("values", "words"), ("pairs", "pairs")):
        for name in dict.fromkeys(row["method"] for row in rows if row[part] is not None):
            cells = {row["budget"]: _mean([row], f"{part}.error.mean", ".3f") for row in rows if row["method"] == name}
            lines.append([name, kind, *(cells.get(budget, "") for budget in budgets)])
    return markdown(["estimator", "error of", *(f"{budget:,} passes" for budget in budgets)], lines, text_columns=2)


def draw(results: Path, folder: Path) -> list[Path]:
    """One picture for each result of exactness."""
    paths = []
    for path in sorted(results.glob(f"{PREFIX}*.json")):
        figure = error_figure(runs(read_result(path.stem, results)), path.stem.removeprefix(PREFIX))
        paths.append(save_figure(figure, folder / f"{path.stem}.svg"))
    return paths


def main() -> int:
    """Draw all pictures of the documents."""
    paths = draw(RESULTS, DOCS / "figures")
    for path in paths:
        print(f"drawn: {path.relative_to(DOCS.parent)}")
    if not paths:
        print(f"no result named {PREFIX}*.json in {RESULTS.name}/", file=sys.stderr)
    return int(not paths)


def _mean(rows: Sequence[Record], path: str, spec: str) -> str:
    """The mean over rows of what lies under the path, its keys with dots between; empty where no row has it."""
    numbers = []
    for row in rows:
        node: Any = row
        for key in path.split("."):
            node = None if node is None else node[key]
        if node is not None:
            numbers.append(node)
    return format(fmean(numbers), spec) if numbers else ""


if __name__ == "__main__":
    sys.exit(main())
