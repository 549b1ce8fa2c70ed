"""A Markdown table from rows of cells."""

from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]], *, text_columns: int = 1) -> str:
    """A Markdown table whose first `text_columns` columns are aligned left, the others right."""
    rule = ["---"] * text_columns + ["---:"] * (len(header) - text_columns)
    lines = [header, rule, *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
