"""Documents from results: figures and tables filled in from `results/*.json`."""

import re
from functools import reduce
from pathlib import Path
from typing import Any

from spinformer import results
from spinformer.report.tables import TABLES

_FIGURE = re.compile(r"(<!--=([\w-]+):([\w. -]+):([^:>]*?)-->)(.*?)(<!--/=-->)", re.DOTALL)
_TABLE = re.compile(r"(<!--table=([\w-]+)-->\n)(.*?)(<!--/table-->)", re.DOTALL)

__all__ = ["render"]


def render(text: str, directory: Path) -> str:
    """`text` with every marked figure and table replaced by what the results in `directory` say."""

    def figure(match: re.Match[str]) -> str:
        opening, name, path, spec, _, closing = match.groups()
        return f"{opening}{format(_lookup(results.read(name, directory), path), spec)}{closing}"

    def table(match: re.Match[str]) -> str:
        opening, name, _, closing = match.groups()
        if name not in TABLES:
            raise ValueError(f"no table named {name!r}; there are: {', '.join(sorted(TABLES))}")
        names, make = TABLES[name]
        return f"{opening}{make(*(results.read(one, directory) for one in names.split('+')))}\n{closing}"

    return _TABLE.sub(table, _FIGURE.sub(figure, text))


def _lookup(record: dict[str, Any], path: str) -> Any:
    try:
        return reduce(_step, path.split("."), record["outcome"])
    except (KeyError, IndexError, ValueError):
        raise ValueError(f"results/{record['name']}.json has no outcome {path!r}") from None


def _step(node: Any, key: str) -> Any:
    """In a list: by place, or a run by JOB-SEED."""
    if not isinstance(node, list):
        return node[key]
    if key.isdecimal():
        return node[int(key)]
    (found,) = (run for run in node if f"{run['job']}-{run['seed']}" == key)
    return found
