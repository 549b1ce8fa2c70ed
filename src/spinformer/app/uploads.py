"""A file of texts that a visitor sends: read in memory, within limits; every row that cannot be used is counted.

The browser sends the file's name and its bytes in base64, as one value of a request: no file is written.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from spinformer.app import limits
from spinformer.app.task import Task
from spinformer.data.columns import PAIRS, SINGLES, Columns, build_texts, find_columns
from spinformer.data.files import FileContent, content_rows, decoded_lines
from spinformer.data.texts import Texts, is_text

TABLES, LINES = (".csv", ".tsv", ".jsonl", ".json"), (".txt",)
NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,200}")
MAX_NAME, ENDING = 60, 8  # characters of a name that are shown, of them at its end


@dataclass(frozen=True)
class Upload:
    """The rows that can be explained, the number of all rows, and what was left out, in sentences."""

    name: str
    texts: Texts
    rows: int
    left_out: tuple[str, ...]


def read_upload(value: object, task: Task) -> Upload:
    """What a visitor sent, `NAME\\nBASE64`; a ValueError where it is no file of texts for this classifier."""
    file = _file(value)
    columns, rows = _plain_rows(file, task) if file.name.lower().endswith(LINES) else _table_rows(file, task)
    kept: list[tuple[int, Sequence[Any]]] = []
    count = long = 0
    for number, row in rows:
        count += 1
        if len(kept) == limits.ROWS:
            continue
        if all(isinstance(text, str) for text in row) and not limits.fits(row):
            long += 1
        else:
            kept.append((number, row))
    if not count:
        raise ValueError(f"{file.name} has no rows: please write a text in each.")
    if not kept:
        raise ValueError(f"{file.name}: no row has a text within the limits ({limits.EACH}).")
    texts = build_texts(kept, columns, file.name)
    return Upload(file.name, texts, count, tuple(_left_out(count, long, len(texts))))


def _left_out(count: int, long: int, kept: int) -> Iterator[str]:
    if long:
        yield f"Rows that are empty, or longer than {limits.EACH}, are left out: {long:,} of {kept + long:,}."
    if count - long > kept:
        yield f"The file has {count:,} rows; {kept:,} are explained at most."


def _file(value: object) -> FileContent:
    """Name and content, which must be text."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("There is no file yet: please choose one.")
    name, _, code = value.partition("\n")
    if not NAME.fullmatch(name) or not is_text(name):
        raise ValueError("The file has no name that can be shown: please name it another way.")
    if len(name) > MAX_NAME:
        name = f"{name[: MAX_NAME - ENDING]}…{name[-ENDING:]}"
    if not name.lower().endswith((*TABLES, *LINES)):
        raise ValueError(f"{name}: expected a file {', '.join((*TABLES, *LINES))}.")
    try:
        content = base64.b64decode(code, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{name}: the file did not arrive as it was sent; please choose it again.") from None
    if len(content) > limits.FILE_BYTES:
        raise ValueError(f"{name} has {len(content):,} bytes; a file may have {limits.FILE_BYTES:,}.")
    if b"\x00" in content:
        raise ValueError(f"{name} is no text in UTF-8: it holds zero bytes, as programs, pictures and archives do.")
    return FileContent(name, content)


def _plain_rows(file: FileContent, task: Task) -> tuple[Columns, Iterator[tuple[int, Sequence[Any]]]]:
    """A text on each line; for pairs, both with a tab between."""
    lines = ((number, line.rstrip("\r\n").split("\t")) for number, line in enumerate(decoded_lines(file), 1))
    filled = ((number, cells) for number, cells in lines if any(cell.strip() for cell in cells))
    if not task.paired:
        return Columns("line", None, None), ((number, [" ".join(cells)]) for number, cells in filled)
    return Columns("first", "second", None), _pairs_of(file.name, filled)


def _pairs_of(name: str, rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, Sequence[Any]]]:
    for number, cells in rows:
        if len(cells) != 2:
            raise ValueError(f"{name}:{number}: expected two texts with a tab between; got {len(cells)}.")
        yield number, cells


def _table_rows(file: FileContent, task: Task) -> tuple[Columns, Iterator[tuple[int, Sequence[Any]]]]:
    """The cells of the columns that the classifier reads."""
    chosen: list[Columns] = []

    def choose(available: Sequence[str]) -> Sequence[str]:
        chosen.append(_columns(available, file.name, task))
        return chosen[0].wanted

    rows = content_rows(file, choose)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{file.name} has no rows: please write a text in each, below the names of the columns.")
    return chosen[0], chain([first], rows)


def _columns(available: Sequence[str], name: str, task: Task) -> Columns:
    """One column or two, as many as the classifier reads."""
    if not all(isinstance(column, str) for column in available):
        raise ValueError(f"{name}: the names of columns must be texts.")
    spelt = {column.strip().lower(): column for column in reversed(available)}
    if task.paired:
        first, second = next((pair for pair in PAIRS if set(pair) <= set(spelt)), ("", ""))
        if first:
            return Columns(spelt[first], spelt[second], None)
        usual = " or ".join(" and ".join(pair) for pair in PAIRS[:3])
        found = ", ".join(map(repr, available[:6])) or "none"
        raise ValueError(f"{name}: expected two columns, such as {usual}; its columns are {found}.")
    single = next((spelt[column] for column in SINGLES if column in spelt), None)
    if single is None:
        found = ", ".join(map(repr, available[:6])) or "none"
        raise ValueError(f"{name}: expected a column {', '.join(SINGLES[:4])}; its columns are {found}.")
    return find_columns(available, name, first=single, labelled=False)
