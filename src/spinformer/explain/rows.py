"""Explanations from files: the rows that `explain_corpus` wrote, or a folder of saved explanations."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spinformer._base import checks
from spinformer._base.choices import FORMATS
from spinformer.data.files import read_rows
from spinformer.explain.exchange import ROW
from spinformer.explain.explanation import Explanation


def load_explanations(path: Path | str) -> list[Explanation]:
    """The explanations of a .jsonl, .csv or .parquet of rows, in their order, or of a folder of JSON files, by name.

    A row that is no explanation is a ValueError with file and line.
    """
    checks.instance("path", path, str, Path)
    path = Path(path)
    if path.is_dir():
        saved = sorted(path.glob("*.json"))
        if not saved:
            raise ValueError(f"{path} is a folder without saved explanations; expected files .json in it")
        return [Explanation.load(each) for each in saved]
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"explanations are read from a file {', '.join(FORMATS)}, or a folder; got {path}")
    explanations = []
    for number, cells in read_rows(path, list(ROW)):
        try:
            values = {name: CELLS[kind](cell) for (name, kind), cell in zip(ROW.items(), cells, strict=True)}
            explanations.append(Explanation.from_row(values))
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{path.name}:{number}: expected the row of an explanation; {reason:.200}") from None
    if not explanations:
        raise ValueError(f"{path.name} has no explanations")
    return explanations


def _text(cell: Any) -> str | None:
    if cell is not None and not isinstance(cell, str):
        raise ValueError(f"expected a text; got {cell!r:.40}")
    return cell or None


def _number(cell: Any) -> float | None:
    return None if cell is None or cell == "" else float(cell)


def _count(cell: Any) -> int:
    number = float(cell)
    if not math.isfinite(number) or number != int(number):
        raise ValueError(f"expected a whole number; got {cell!r:.40}")
    return int(number)


def _list(cell: Any) -> list[Any]:
    """A list, which CSV holds as JSON."""
    items = json.loads(cell) if isinstance(cell, str) else cell
    if not isinstance(items, list):
        raise ValueError(f"expected a list; got {cell!r:.40}")
    return items


def _shares(cell: Any) -> dict[str, float]:
    """Numbers by name, which Parquet holds as a list of pairs."""
    shares = json.loads(cell) if isinstance(cell, str) else cell
    return dict(shares)


CELLS: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "number": _number,
    "count": _count,
    "texts": _list,
    "numbers": _list,
    "counts": _list,
    "shares": _shares,
}
