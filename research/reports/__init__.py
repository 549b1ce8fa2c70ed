"""Documents from results: fill the marked figures and tables of a text from `research/results/*.json`."""

import re
from functools import reduce
from pathlib import Path
from typing import Any

from research.reports.markdown import Record
from research.reports.results import read_result
from research.reports.tables import TABLES

_FIGURE = re.compile(r"(<!--=([\w-]+):([\w. -]+):([^:>]*?)-->)(.*?)(<!--/=-->)", re.DOTALL)
_TABLE = re.compile(r"(<!--table=([\w-]+)-->\n)(.*?)(<!--/table-->)", re.DOTALL)

__all__ = ["render"]


def render(text: str, directory: Path) -> str:
    """`text` with every marked figure and table filled from the results in `directory`."""

    def figure(match: re.Match[str]) -> str:
        opening, name, path, spec, _, closing = match.groups()
        return f"{opening}{format(_lookup(read_result(name, directory), path), spec)}{closing}"

    def table(match: re.Match[str]) -> str:
        opening, name, _, closing = match.groups()
        if name not in TABLES:
            raise ValueError(f"no table named {name!r}; there are: {', '.join(sorted(TABLES))}")
        results, build = TABLES[name]
        return f"{opening}{build(*(read_result(result, directory) for result in results))}\n{closing}"

    return _TABLE.sub(table, _FIGURE.sub(figure, text))


def _lookup(record: Record, path: str) -> Any:
    try:
        return reduce(_step, path.split("."), record["outcome"])
    except (KeyError, IndexError, ValueError):
        raise ValueError(f"result {record['name']}.json has no outcome {path!r}") from None


def _step(node: Any, key: str) -> Any:
    """The item of a mapping by its key, of a list by its position, of a list of runs by JOB-SEED."""
    if not isinstance(node, list):
        return node[key]
    if key.isdecimal():
        return node[int(key)]
    (run,) = (run for run in node if f"{run['job']}-{run['seed']}" == key)
    return run
