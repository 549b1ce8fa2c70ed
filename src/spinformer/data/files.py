"""Texts from files: JSON lines, CSV, TSV, Parquet and plain lines, gzipped or not.

CSV and TSV have a header row. CSV is quoted as spreadsheets quote it; TSV is not quoted, as GLUE and SNLI have it. In
a .txt file every line is a text, or a pair with a tab between; there are no labels.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from spinformer._base.extras import require
from spinformer._base.files import sha256
from spinformer.data.columns import Columns, build_texts, find_columns
from spinformer.data.texts import Texts
from spinformer.data.unpacking import GZIP_ERRORS, bounded_lines, check_unpacked, open_binary

FORMATS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".txt")
PLAIN = {1: ("text",), 2: ("premise", "hypothesis")}  # the columns of plain lines, by the number of texts
BATCH, CELL = 4096, 50  # rows of a Parquet file that are read at once; bytes that Python takes for each cell

# A row is its line number and its cells; a `Choose` gets the names of all columns and returns those to read.
NumberedRows = Iterator[tuple[int, Sequence[Any]]]
Choose = Callable[[Sequence[str]], Sequence[str]]


@dataclass(frozen=True)
class FileContent:
    """A file that is not on disk: its name, and its bytes."""

    name: str
    content: bytes


def read_texts(
    path: str | Path,
    *,
    first: str | None = None,
    second: str | None = None,
    label: str | None = None,
    names: Sequence[str] | None = None,
    labelled: bool = True,
) -> Texts:
    """Texts, or pairs of texts, of a file .jsonl (.json), .csv, .tsv, .parquet or .txt, each with .gz or without.

    first, second, label: the names of the columns, by default those with a usual name; `first` alone means single
    texts. names: the class names, in the order of the labels; by default those of natural language inference if all
    labels are among them, else the labels themselves, sorted. labelled=False reads no labels. Rows without a gold label
    (-1, "-", empty, null) are dropped and counted; any other row that cannot be read is a ValueError with file:line.
    """
    path = Path(path)
    columns, rows = _columns_and_rows(path, first=first, second=second, label=label, labelled=labelled)
    texts = build_texts(rows, columns, path.name, names=names)
    return replace(texts, digests=((path.name, sha256(path)),))


def text_chunks(path: str | Path, size: int, *, first: str | None = None, second: str | None = None) -> Iterator[Texts]:
    """As `read_texts`, without labels, `size` rows at a time: no more of the file is in memory."""
    path = Path(path)
    columns, rows = _columns_and_rows(path, first=first, second=second, label=None, labelled=False)
    while taken := list(islice(rows, size)):
        yield build_texts(taken, columns, path.name)


def _columns_and_rows(path: Path, **options: Any) -> tuple[Columns, NumberedRows]:
    """The columns of a file, found by these options of `find_columns`, and its rows; it must have one at least."""
    columns: list[Columns] = []

    def choose(available: Sequence[str]) -> Sequence[str]:
        columns.append(find_columns(available, path.name, **options))
        return columns[0].wanted

    iterator = _reader_of(path)(path, choose)
    first_row = next(iterator, None)
    if first_row is None:
        raise ValueError(f"{path.name} has no rows; expected at least one")
    return columns[0], chain([first_row], iterator)


def read_rows(path: str | Path, columns: Sequence[str]) -> NumberedRows:
    """The cells of these columns, row by row, each row with its number; a column that is missing is a ValueError."""
    path = Path(path)

    def choose(available: Sequence[str]) -> Sequence[str]:
        missing = [name for name in columns if name not in available]
        if missing:
            raise ValueError(f"{path.name} has no column {', '.join(missing)}; got {', '.join(available)}")
        return columns

    return _reader_of(path)(path, choose)


def content_rows(file: FileContent, choose: Choose) -> NumberedRows:
    """The cells of the columns that `choose` returns, of the content of a .csv, .tsv or .txt, or of JSON lines."""
    ending = Path(file.name.lower()).suffix
    return _TEXT_FORMATS.get(ending, json_rows)(file, choose)


def is_format(name: str) -> bool:
    """Whether a file with the ending of this name can be read."""
    return name.lower().removesuffix(".gz").endswith(FORMATS)


def _reader_of(path: Path) -> Callable[[Path, Choose], NumberedRows]:
    """What reads a file of this ending; an error where there is none, or no such file."""
    if not is_format(path.name):
        raise ValueError(f"{path.name}: expected a file {', '.join(FORMATS)}, with .gz or without")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is a folder; expected a file" if path.is_dir() else f"no file {path}")
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    return _parquet if ending == ".parquet" else _TEXT_FORMATS.get(ending, json_rows)


def decoded_lines(path: Path | FileContent) -> Iterator[str]:
    """The lines of a text file, decoded one by one so that an error can name its line."""
    with io.BytesIO(path.content) if isinstance(path, FileContent) else open_binary(path) as file:
        number = 0
        try:
            for number, line in enumerate(bounded_lines(file, path.name), 1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise ValueError(f"{path.name}:{number}: expected UTF-8; got the byte 0x{byte:02x}") from None
        except GZIP_ERRORS as error:
            raise ValueError(f"{path.name} is not a complete gzip file: {error}") from None


def json_rows(path: Path | FileContent, choose: Choose) -> NumberedRows:
    """The rows of a file of JSON lines, with the columns that `choose` returns."""
    wanted: Sequence[str] = ()
    for number, line in enumerate(decoded_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise ValueError(f"{path.name}:{number}: expected one JSON object; got {line.strip()!r:.80}") from None
        if not isinstance(row, dict):
            raise ValueError(f"{path.name}:{number}: expected one JSON object; got {line.strip():.80}")
        wanted = wanted or choose(list(row))
        try:
            cells = [row[name] for name in wanted]
        except KeyError as error:
            fields = ", ".join(map(repr, row)) or "none"
            raise ValueError(f"{path.name}:{number}: expected a field {error}; its fields are {fields}") from None
        yield number, cells


def _plain(path: Path | FileContent, choose: Choose) -> NumberedRows:
    """A text, or two with a tab between, in every line that is not empty."""
    positions: list[int] = []
    width = 0
    for number, line in enumerate(decoded_lines(path), 1):
        cells = split_plain(line, f"{path.name}:{number}", width) if line.strip() else ()
        if not cells:
            continue
        if not positions:
            width, columns = len(cells), PLAIN[len(cells)]
            positions = [columns.index(name) for name in choose(columns)]
        yield number, [cells[position] for position in positions]


def split_plain(line: str, where: str, width: int = 0) -> tuple[str, ...]:
    """The text or the two texts of a plain line; width: how many there must be, 0 for one or two."""
    cells = tuple(line.rstrip("\r\n").split("\t"))
    if len(cells) not in (PLAIN if not width else (width,)):
        expected = (
            "a text, or two with a tab between",
            "one text, as before, without a tab",
            "two texts, a tab between",
        )
        count = "1 text" if len(cells) == 1 else f"{len(cells)} texts"
        raise ValueError(f"{where}: expected {expected[width]}; got {count}: {line.strip()!r:.60}")
    return cells


def _csv(path: Path | FileContent, choose: Choose) -> NumberedRows:
    return _separated(path, choose, csv.reader(decoded_lines(path), strict=True))


def _tsv(path: Path | FileContent, choose: Choose) -> NumberedRows:
    lines = decoded_lines(path)
    return _separated(path, choose, csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))


def _separated(path: Path | FileContent, choose: Choose, reader: Any) -> NumberedRows:
    header: list[str] = []
    positions: list[int] = []
    while True:
        number = reader.line_num + 1  # a quoted cell may have several lines: a row is named by its first
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{path.name}:{number}: expected a row of complete, quoted cells; {error}") from None
        if cells is None:
            return
        if not cells:
            continue
        if not header:
            header = cells
            positions = [header.index(name) for name in choose(header)]
            continue
        if len(cells) != len(header):
            raise ValueError(f"{path.name}:{number}: expected {len(header)} cells, as in the header; got {len(cells)}")
        yield number, [cells[position] for position in positions]


_TEXT_FORMATS = {".csv": _csv, ".tsv": _tsv, ".txt": _plain}


def _parquet(path: Path, choose: Choose) -> NumberedRows:
    parquet = require("pyarrow.parquet", extra="nli")
    arrow = require("pyarrow", extra="nli")
    number = unpacked = 0
    try:
        with open_binary(path) as raw, parquet.ParquetFile(raw if raw.seekable() else io.BytesIO(raw.read())) as file:
            wanted = list(choose(file.schema_arrow.names))
            check_unpacked(path.name, CELL * file.metadata.num_rows * len(wanted), path.stat().st_size)
            for batch in file.iter_batches(BATCH, columns=wanted):
                unpacked += batch.nbytes + CELL * batch.num_rows * len(wanted)
                check_unpacked(path.name, unpacked, path.stat().st_size)
                for row in zip(*(batch[name].to_pylist() for name in wanted), strict=True):
                    number += 1
                    yield number, row
    except (OSError, KeyError, arrow.ArrowException, UnicodeDecodeError, *GZIP_ERRORS) as error:
        raise ValueError(f"{path.name} is not a complete Parquet file: {' '.join(str(error).split())}") from None
