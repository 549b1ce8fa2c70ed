"""A Markdown table from rows of cells."""

from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; the first column is set left, the others right."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    lines = [header, rule, *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
