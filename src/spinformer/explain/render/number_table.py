"""The strongest words and pairs of an explanation as a table for a terminal, with the numbers that the method gives."""

from dataclasses import dataclass

from spinformer._base.characters import printable
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.characters import display_width, fit
from spinformer.explain.render.layout import noun, score_name

NAMES, PAIRS, LEAST = 16, 32, 8  # columns of the names of words and of pairs, and of a name that little room is left
JOIN = " - "


@dataclass(frozen=True)
class NumberColumn:
    """title: its heading; field: of `Word`; width: in columns; digits: the format of its numbers."""

    title: str
    field: str
    width: int
    digits: str


def number_table(record: ExplanationRecord, count: int, width: int) -> str:
    """The `count` most important words, or whatever the players are, with their numbers, and the strongest pairs.

    Names too long for lines of `width` columns are cut, and end in an ellipsis.
    """
    words = record.top_words(count)
    score = score_name(record).removesuffix(" value")
    columns = (  # of two with one title the last, in the place of the first
        NumberColumn(score, "importance", 11, "+.3f"),
        NumberColumn("±", "importance_stderr", 8, ".3f"),
        NumberColumn("Banzhaf", "banzhaf", 11 if score == "Banzhaf" else 9, "+.3f"),
        NumberColumn("attention", "attention", 11, ".3f"),
    )
    titled = {column.title: column for column in columns}
    shown = [column for column in titled.values() if all(getattr(word, column.field) is not None for word in words)]
    texts = [printable(word.text) for word in words]
    room = _room(texts, NAMES, width - 2 - sum(column.width for column in shown))
    lines = [_line(noun(record).removesuffix("s"), room, *(f"{column.title:>{column.width}}" for column in shown))]
    for word, text in zip(words, texts, strict=True):
        numbers = (f"{format(getattr(word, column.field), column.digits):>{column.width}}" for column in shown)
        lines.append(_line(text, room, *numbers))
    return "\n".join([*lines, *_pairs(record, count, width)])


def _pairs(record: ExplanationRecord, count: int, width: int) -> list[str]:
    if not record.pairs:
        return []
    rows = [
        (
            (printable(first.text), printable(second.text)),
            f"{value:>+9.3f}  {'synergy' if value > 0 else 'antagonism'}",
        )
        for first, second, value in record.top_pairs(count)
    ]
    end = max(len(numbers) for _, numbers in rows)
    room = _room([JOIN.join(names) for names, _ in rows], PAIRS, width - 2 - end)
    return ["", "  pairs", *(_line(_pair(*names, room), room, numbers) for names, numbers in rows)]


def _pair(first: str, second: str, room: int) -> str:
    """Both names in `room` columns; one that needs less than half of them leaves the rest to the other."""
    both = room - len(JOIN)
    half = both // 2
    if display_width(first) <= half:
        half = display_width(first)
    elif display_width(second) < both - half:
        half = both - display_width(second)
    return fit(first, half) + JOIN + fit(second, both - half)


def _room(names: list[str], usual: int, available: int) -> int:
    """Columns for names: as many as they need, `usual` or more, unless fewer are left in a line."""
    needed = max(map(display_width, names), default=0)
    return max(LEAST, min(max(usual, needed), available))


def _line(name: str, room: int, *cells: str) -> str:
    name = fit(name, room)
    return f"  {name}{' ' * (room - display_width(name))}{''.join(cells)}"
