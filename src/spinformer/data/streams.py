"""Texts that do not fit in memory, or have no end: read part by part."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

from spinformer._base import checks
from spinformer.data.columns import build_texts, find_columns
from spinformer.data.files import is_format, text_chunks
from spinformer.data.sources import load_texts
from spinformer.data.texts import Texts, split_source

CHUNK = 4096  # rows that are checked together
PART = 8 * CHUNK  # texts in memory at once


@dataclass(frozen=True)
class TextStream:
    """Texts, or pairs of texts, that are read part by part, as often as they are asked for.

    chunks: begins to read from the first text on; source: where they come from, for messages; left_out: rows among the
    first PART that are not read (`split`).
    """

    chunks: Callable[[], Iterable[Texts]]
    source: str = "a stream"
    left_out: frozenset[int] = frozenset()

    def parts(self, size: int = PART) -> Iterator[Texts]:
        """The texts, `size` at a time; the last part may be smaller."""
        checks.at_least("size", size, 1)
        rows = (row for number, row in enumerate(self._rows()) if number not in self.left_out)
        while taken := list(islice(rows, size)):
            first, *second = (list(column) for column in zip(*taken, strict=True))
            yield Texts(first, second[0] if second else None, source=self.source)

    def split(self, count: int, *, seed: int = 0) -> tuple["TextStream", Texts | None]:
        """The stream without some texts, and these: at most `count`, and a tenth, of its first PART; None below ten."""
        checks.at_least("count", count, 1)
        if self.left_out:
            raise ValueError(f"{self.source} was split before")
        first = next(self.parts(), None)
        if first is None:
            raise ValueError(f"{self.source} has no texts; expected at least one")
        rows = sorted(Random(seed).sample(range(len(first)), min(count, len(first) // 10)))
        return replace(self, left_out=frozenset(rows)), first.select(rows) if rows else None

    def _rows(self) -> Iterator[tuple[str, ...]]:
        paired: bool | None = None
        for chunk in self.chunks():
            if paired is not None and chunk.paired != paired:
                raise ValueError(
                    f"{self.source}: expected {'pairs' if paired else 'single texts'} throughout; got both"
                )
            paired = chunk.paired
            yield from zip(*([chunk.first] if chunk.second is None else [chunk.first, chunk.second]), strict=True)


def stream_texts(source: str | Path, *, first: str | None = None, second: str | None = None) -> TextStream:
    """The texts that `source` names (`load_texts`); of files, no more is in memory than one part.

    first, second: the names of the columns, by default those with a usual name.
    """
    checks.instance("source", source, str, Path)
    sources = split_source(str(source))
    for name in sources:
        if not Path(name).is_file() and is_format(name):
            raise FileNotFoundError(f"no file {name}")

    def chunks() -> Iterator[Texts]:
        for name in sources:
            if Path(name).is_file():
                yield from text_chunks(name, CHUNK, first=first, second=second)
            else:
                yield load_texts(name, first=first, second=second, labelled=False)

    return TextStream(chunks, " + ".join(Path(name).name for name in sources))


def stream_rows(
    rows: Iterable[Any], *, first: str | None = None, second: str | None = None, source: str = "a stream"
) -> TextStream:
    """A stream of what an iterable yields: texts, pairs of texts, or rows with names, such as those of a data set.

    first, second: the names of the columns of such rows, by default those with a usual name. An iterator, which can be
    read once alone, may be begun again as long as no more than its first part has been read.
    """
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise TypeError(f"rows must be an iterable of texts, pairs or rows with names; got {type(rows).__name__}")
    begin: Callable[[], Iterator[Any]] = _Once(rows) if isinstance(rows, Iterator) else partial(iter, rows)

    def chunks() -> Iterator[Texts]:
        started = begin()
        number = 1
        while taken := list(islice(started, CHUNK)):
            yield _chunk(taken, number, first, second, source)
            number += len(taken)

    return TextStream(chunks, source)


def _chunk(rows: Sequence[Any], number: int, first: str | None, second: str | None, source: str) -> Texts:
    """The texts of some rows, of which the first has this number."""
    if isinstance(rows[0], Mapping):
        columns = find_columns(list(rows[0]), source, first=first, second=second, labelled=False)
        try:
            cells = [[row[name] for name in columns.wanted] for row in rows]
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{source}: expected rows with {', '.join(columns.wanted)}; got {error}") from None
    else:
        columns = find_columns(
            ("text",) if isinstance(rows[0], str) else ("premise", "hypothesis"), source, labelled=False
        )
        cells = [[row] if isinstance(row, str) else row for row in rows]
        for place, row in enumerate(cells):
            if not isinstance(row, list | tuple) or len(row) != len(columns.wanted):
                expected = "a pair of texts" if columns.second else "a text"
                raise ValueError(f"{source}:{number + place}: expected {expected}, as before; got {rows[place]!r:.60}")
    return build_texts(enumerate(cells, number), columns, source)


class _Once:
    """Begins an iterator anew while no more than its first PART rows have been read, which are kept."""

    def __init__(self, rows: Iterator[Any]) -> None:
        self.rows, self.kept, self.taken = rows, list[Any](), 0

    def __call__(self) -> Iterator[Any]:
        if self.taken > len(self.kept):
            raise ValueError("an iterator can be read once alone; give a list, a data set or a file to read it again")
        return chain(list(self.kept), self._others())

    def _others(self) -> Iterator[Any]:
        for row in self.rows:
            self.taken += 1
            if len(self.kept) < PART:
                self.kept.append(row)
            yield row
