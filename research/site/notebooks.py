"""Tutorials as Jupyter notebooks, without outputs.

A tutorial is a page of Markdown, docs/tutorials/NAME.md, whose Python blocks run in their order: differences stay
readable, and the tests run it. `python -m research.site.notebooks FOLDER` writes NAME.ipynb for each.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from research.paths import DOCS

TUTORIALS = "tutorials"
PYTHON = re.compile(r"^```python\n(.*?)^```\n?", re.DOTALL | re.MULTILINE)
# What stands below a block of Python: what it prints.
PRINTED = re.compile(r"^```text\n.*?^```\n?", re.DOTALL | re.MULTILINE)
RELATIVE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)|(?<!!)\[([^\]]*)\]\((?!https?:|#)[^)]*\)")


def notebook(text: str) -> dict[str, Any]:
    """The page as a notebook of version 4.5: Python blocks are its code cells, what they print is left to Jupyter."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(PYTHON.split(text)):
        source = part if number % 2 else RELATIVE.sub(r"\1", PRINTED.sub("", part))
        if source.strip():
            cells.append(_cell(source.strip("\n"), code=bool(number % 2), number=len(cells)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(source: str, code: bool, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
    if code:
        return {"cell_type": "code", "execution_count": None, "outputs": [], **cell}
    return {"cell_type": "markdown", **cell}


def save_notebooks(folder: Path) -> list[Path]:
    """Write every tutorial into the folder; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for page in sorted((DOCS / TUTORIALS).glob("*.md")):
        paths.append(folder / f"{page.stem}.ipynb")
        content = json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1, ensure_ascii=False)
        paths[-1].write_text(content + "\n", encoding="utf-8")
    return paths


if __name__ == "__main__":
    for path in save_notebooks(Path(sys.argv[1] if len(sys.argv) > 1 else TUTORIALS)):
        print(path)
