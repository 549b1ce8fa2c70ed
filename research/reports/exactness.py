"""Pictures and tables of exactness: how close explanations come to the classifier's exact values.

`draw` makes docs/figures/exactness-NAME.svg from every research/results/exactness-NAME.json of several groundings, with
the peers of exactness-NAME-peers.json where that exists (`python -m research.tools.draw`). `spinformer reproduce
grounding --stage exact` and `--stage peers` write them: an outcome has `runs`, one for each grounding, over which
errors are averaged.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from research.reports.markdown import Record, markdown
from research.reports.results import read_result
from spinformer.evaluate.explanations.figures import error_figure
from spinformer.explain.render.canvas import save_figure

PREFIX, PEERS = "exactness-", "-peers"
CLOSENESS = ("passes", "words: error", "in 95% interval", "pairs: error", "in 95% interval")


def runs(record: Record) -> list[Record]:
    """What `Exactness.to_dict` gave, once for each grounding."""
    return [run["exactness"] for run in record["outcome"]["runs"]]


def ours(record: Record) -> str:
    """Our methods by their passes: errors, coverage, whether Shapley values add up, whether promises were kept."""
    found = runs(record)
    lines = []
    for name in found[0]["settings"]:
        rows = [run["settings"][name] for run in found]
        gaps = [one["additivity"] for one in rows if one["additivity"] is not None]
        promise = _mean(rows, "promise.kept", ".0%")
        lines.append([_method(rows[0]), *_closeness(rows), f"{max(gaps):.0e}" if gaps else "", promise])
    return markdown(["method", *CLOSENESS, "largest gap", "promise kept"], lines)


def kinds(*records: Record) -> str:
    """Shapley values of one game on texts of several kinds, one record for each."""
    lines = []
    for record in records:
        (run,) = runs(record)
        for row in run["settings"].values():
            if row["method"] == "shapley":
                asked = f"`passes={row['budget']}`" if row["budget"] else "one pass"
                asked = f"`until={row['promise']['until']:g}`" if row["promise"] else asked
                kept = _mean([row], "promise.kept", ".0%")
                lines.append([Path(run["source"]).name.split(".")[0], asked, *_closeness([row]), kept])
    return markdown(["texts", "", *CLOSENESS, "promise kept"], lines, text_columns=2)


def peers(record: Record) -> str:
    """shapiq's estimators, a column for each budget: the errors of words' values, then those of pairs."""
    (run,) = record["outcome"]["runs"]
    rows = list(run["peers"].values())
    budgets = sorted({row["budget"] for row in rows})
    lines = []
    for part, kind in (("values", "words"), ("pairs", "pairs")):
        for name in dict.fromkeys(row["method"] for row in rows if row[part] is not None):
            cells = {row["budget"]: _mean([row], f"{part}.error.mean", ".3f") for row in rows if row["method"] == name}
            lines.append([name, kind, *(cells.get(budget, "") for budget in budgets)])
    return markdown(["estimator", "error of", *(f"{budget:,} passes" for budget in budgets)], lines, text_columns=2)


def joined(name: str, results: Path) -> list[Record]:
    """The runs of a result, with its peers where they were measured."""
    found = runs(read_result(name, results))
    if (results / f"{name}{PEERS}.json").is_file():
        (rivals,) = read_result(f"{name}{PEERS}", results)["outcome"]["runs"]
        found = [{**run, "peers": rivals["peers"]} for run in found]
    return found


def draw(results: Path, folder: Path) -> list[Path]:
    """One picture for each result of exactness of several groundings."""
    paths = []
    for path in sorted(results.glob(f"{PREFIX}*.json")):
        if path.stem.endswith(PEERS) or len(found := joined(path.stem, results)) < 2:
            continue
        figure = error_figure(found)
        paths.append(save_figure(figure, folder / f"{path.stem}.svg"))
    return paths


def _method(row: Record) -> str:
    return f"`{row['method']}`" + (f", `until={row['promise']['until']:g}`" if row["promise"] else "")


def _closeness(rows: Sequence[Record]) -> list[str]:
    """Cells under CLOSENESS, means over the rows."""
    cells = [_mean(rows, "passes.mean", ".0f")]
    for part in ("values", "pairs"):
        error = _mean(rows, f"{part}.error.mean", ".3f", spread=True)
        cells += [error, _mean(rows, f"{part}.coverage.pooled", ".1%")]
    return cells


def _mean(rows: Sequence[Record], path: str, spec: str, *, spread: bool = False) -> str:
    """The mean over rows of what lies under the path, its keys with dots between; empty where no row has it.

    spread: with the standard deviation, where there are several rows.
    """
    numbers = []
    for row in rows:
        node: Any = row
        for key in path.split("."):
            node = None if node is None else node[key]
        if node is not None:
            numbers.append(node)
    if not numbers:
        return ""
    deviation = f" ± {stdev(numbers):{spec}}" if spread and len(numbers) > 1 else ""
    return format(fmean(numbers), spec) + deviation
