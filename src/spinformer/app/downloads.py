"""What a visitor takes home, as links that hold the whole file: nothing is written, and nothing has an address."""

import base64
import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any

from spinformer.app.points import points
from spinformer.explain.exchange import to_row
from spinformer.explain.explanation import Explanation
from spinformer.explain.explanation_set import ExplanationSet
from spinformer.explain.render.html import to_html

# File name, media type, content, what it is.
File = tuple[str, str, str, str]
# Words of each text in the table for spreadsheets.
MAX_WORDS = 5
# What a spreadsheet would take for a formula, where a cell begins, and where one that splits cells elsewhere begins it.
FORMULA = re.compile(r"(^|[;|\t\r\n])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")


def links(files: Iterable[File]) -> str:
    """A link for each file, as HTML."""
    items = "".join(
        f'<a class="download" download="{name}" href="data:{kind};charset=utf-8;base64,{_base64(content)}">'
        f"Download the {title}</a>"
        for name, kind, content, title in files
    )
    return f'<div class="downloads">{items}</div>'


def explanation_files(explanation: Explanation) -> list[File]:
    """One explanation: for programs, and as a report."""
    text = json.dumps(explanation.to_dict(), ensure_ascii=False)
    return [
        ("explanation.json", "application/json", text, "JSON"),
        ("explanation.html", "text/html", to_html(explanation), "HTML report"),
    ]


def set_files(explained: ExplanationSet, page: str) -> list[File]:
    """Many explanations: the overview, a row for each text (`ExplanationSet.load` reads it), and for spreadsheets."""
    rows = "".join(json.dumps(to_row(one, number)) + "\n" for number, one in enumerate(explained))
    return [
        ("overview.html", "text/html", page, "overview (HTML)"),
        ("explained.jsonl", "application/x-ndjson", rows, "rows (JSON lines)"),
        ("explained.csv", "text/csv", spreadsheet(explained), "table (CSV)"),
    ]


def spreadsheet(explained: ExplanationSet) -> str:
    """A row for each text: what was decided, and the strongest words. No cell is a formula, whatever the text holds.

    Where one would be, an apostrophe stands before it.
    """
    second = ["text_pair"] if len(explained[0].texts) == 2 else []
    table = io.StringIO()
    writer = csv.writer(table, quoting=csv.QUOTE_ALL)
    writer.writerow(["row", "text", *second, "answer", "value", "explained for", "words for it", "words against it"])
    for number, one in enumerate(explained, 1):
        target = one.target if one.against is None else f"{one.target} against {one.against}"
        cells: list[Any] = [*one.texts, one.label, _rounded(one.probabilities[one.label]), target]
        cells += [_words(one, 1), _words(one, -1)]
        writer.writerow([number, *(FORMULA.sub(r"\1\2'", cell) if isinstance(cell, str) else cell for cell in cells)])
    return "\ufeff" + table.getvalue()  # by which spreadsheets know that it is UTF-8


def _rounded(value: float) -> float:
    return round(value, 4)


def _words(explanation: Explanation, sign: int) -> str:
    """The strongest words of this sign, each with what it adds."""
    strongest = [word for word in explanation.top_words(len(explanation.words)) if word.importance * sign > 0]
    return ", ".join(f"{word.text} ({points(explanation, word.importance)})" for word in strongest[:MAX_WORDS])


def _base64(content: str) -> str:
    return base64.b64encode(content.encode()).decode()
