"""Arcs between words as SVG written by hand, which needs no extra."""

import math
import textwrap
from dataclasses import dataclass, replace

from spinformer._base.characters import printable
from spinformer.explain.record import ExplanationRecord, Pair
from spinformer.explain.render.characters import capitalize, display_width, shorten
from spinformer.explain.render.layout import (
    OMITTED,
    base_line,
    describe_pairs,
    side_names,
    strongest_pairs,
    word_rows,
)
from spinformer.explain.render.markup import escape, format_signed, shade_class
from spinformer.explain.render.scale import Scales, scales_of

# In pixels: width of a character, padding of a box, gap between boxes, height of a box, and how far from its middle
# arcs begin.
CHARACTER, PADDING, GAP, HEIGHT, OFFSET = 8.0, 5.0, 7.0, 24.0, 14.0
ROW_DISTANCE, MARGIN = 130.0, 8.0
# Of the lines below the words: width of a character, height, and the width that they have at least.
SMALL_CHARACTER, LINE, MIN_WIDTH = 6.7, 16.0, 400.0
MAX_LENGTH = 16


@dataclass(frozen=True)
class WordBox:
    """A word to draw, or dots for those left out (position OMITTED): its side, left end, width and text."""

    position: int
    side: int
    left: float
    width: float
    text: str

    @property
    def middle(self) -> float:
        """Where its arcs begin."""
        return self.left + self.width / 2

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.left + self.width


def arcs_svg(record: ExplanationRecord, max_pairs: int = 12, scales: Scales | None = None) -> str:
    """The first text above the second, with arcs between the words of the strongest pairs.

    Arcs are solid for synergy, dashed for antagonism, and wider where the interaction is stronger. Below stand the
    probability with no words, and the notes. scales: None for those of this explanation alone.
    """
    scales = scales or scales_of(record)
    pairs = strongest_pairs(record, max_pairs)
    boxes = _boxes(record, pairs)
    middle = {box.position: box.middle for box in boxes}
    rises = [0.0, 0.0]  # of the arcs above the first text and below the second
    for pair in pairs:
        side = record.words[pair.first].side
        if side == record.words[pair.second].side:
            rises[side] = max(rises[side], _rise(abs(middle[pair.second] - middle[pair.first])))
    names = side_names(record)
    levels = [MARGIN + rises[0] + OFFSET + 22 + side * ROW_DISTANCE for side in range(len(names))]
    labels = [levels[0] - OFFSET - rises[0] - 8, levels[-1] + OFFSET + rises[1] + 16]
    bottom = levels[-1] + OFFSET + rises[1] + 26
    width = max(box.right for box in boxes) + MARGIN
    base = base_line(record, str)
    below = [*([capitalize(base)] if base else []), *(f"Note: {note}" for note in record.notes)]
    if below:
        width = max(width, MIN_WIDTH)
    lines = [line for text in below for line in textwrap.wrap(printable(text), int((width - MARGIN) / SMALL_CHARACTER))]
    height = bottom + LINE * len(lines) + (MARGIN if lines else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" aria-label="{describe_pairs(record, pairs)}">'
    ]
    parts += [_arc(record, pair, middle, levels, abs(scales.pairs.part(pair.interaction))) for pair in reversed(pairs)]
    parts += [
        f'<text class="row" x="{MARGIN:.0f}" y="{y:.1f}">{name}</text>' for name, y in zip(names, labels, strict=False)
    ]
    for box in boxes:
        part = 0.0 if box.position == OMITTED else scales.words.part(record.words[box.position].importance)
        parts.append(_word(box, levels[box.side], part))
    for number, line in enumerate(lines):
        parts.append(
            f'<text class="row" x="{MARGIN:.0f}" y="{bottom + LINE * (number + 0.75):.1f}">{escape(line)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _boxes(record: ExplanationRecord, pairs: list[Pair]) -> list[WordBox]:
    """Row by row, each row centred."""
    rows: list[list[WordBox]] = []
    for side, positions in enumerate(word_rows(record, pairs)):
        left = MARGIN
        rows.append([])
        for position in positions:
            text = "…" if position == OMITTED else shorten(record.words[position].text, MAX_LENGTH)
            box = WordBox(position, side, left, CHARACTER * display_width(text) + 2 * PADDING, text)
            rows[-1].append(box)
            left = box.right + GAP
    ends = [row[-1].right if row else MARGIN for row in rows]
    return [
        replace(box, left=box.left + (max(ends) - end) / 2) for row, end in zip(rows, ends, strict=True) for box in row
    ]


def _arc(record: ExplanationRecord, pair: Pair, middle: dict[int, float], levels: list[float], strength: float) -> str:
    """strength: part of the full width, 0 to 1."""
    one, other = record.words[pair.first], record.words[pair.second]
    a, b = middle[pair.first], middle[pair.second]
    if one.side == other.side:
        bend = -1 if one.side == 0 else 1
        start = end = levels[one.side] + bend * OFFSET
        handle = start + bend * _rise(abs(b - a)) * 4 / 3  # the curve reaches three quarters of its handles
    else:
        start, end = levels[one.side] + OFFSET, levels[other.side] - OFFSET
        handle = (start + end) / 2
    kind = "synergy" if pair.interaction > 0 else "antagonism"
    title = escape(f"{shorten(one.text, 40)} – {shorten(other.text, 40)}: {format_signed(pair.interaction)}")
    return (
        f'<path class="arc {kind}" stroke-width="{1 + 5 * strength:.1f}" '
        f'd="M{a:.1f} {start:.1f}C{a:.1f} {handle:.1f} {b:.1f} {handle:.1f} {b:.1f} {end:.1f}">'
        f"<title>{title}</title></path>"
    )


def _word(box: WordBox, y: float, part: float) -> str:
    shade, background, text_class = shade_class(part), "", ""
    if shade:
        size = f'width="{box.width:.1f}" height="{HEIGHT:.0f}" rx="4"'
        background = f'<rect class="g{shade}" x="{box.left:.1f}" y="{y - HEIGHT / 2:.1f}" {size}/>'
        text_class = f' class="t{shade}"'
    center = f'x="{box.middle:.1f}" y="{y + 4.5:.1f}" text-anchor="middle"'
    return f"{background}<text{text_class} {center}>{escape(box.text)}</text>"


def _rise(span: float) -> float:
    """Height of an arc over `span`."""
    return 16 + 130 * (1 - math.exp(-span / 450))
