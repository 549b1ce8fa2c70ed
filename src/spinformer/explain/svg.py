"""Arcs between words as SVG made by hand, which needs no extra."""

import math
import unicodedata
from dataclasses import dataclass

from spinformer.explain.explanation import Explanation, Pair
from spinformer.explain.layout import rows, said_of_pairs, side_names, strongest_pairs
from spinformer.explain.markup import cut, escaped, shade, signed

# In pixels: of a character, around a word, between words, of a word's ground, from its middle to where arcs begin.
LETTER, PAD, GAP, TALL, OFF = 8.0, 5.0, 7.0, 24.0, 14.0
BETWEEN, MARGIN = 130.0, 8.0
LONGEST = 16


@dataclass(frozen=True)
class Chip:
    """A word, or dots for some (place -1): its side, its left end and width, what is shown."""

    place: int
    side: int
    left: float
    width: float
    text: str

    @property
    def middle(self) -> float:
        """Where its arcs begin."""
        return self.left + self.width / 2


def arcs_svg(explanation: Explanation, most: int = 12) -> str:
    """The premise above the hypothesis, solid arcs for synergy and dashed ones for antagonism, wider where stronger."""
    pairs = strongest_pairs(explanation, most)
    chips = _chips(explanation, pairs)
    middle = {chip.place: chip.middle for chip in chips}
    rises = [0.0, 0.0]  # of the arcs above the first text and below the second
    for pair in pairs:
        side = explanation.words[pair.first].side
        if side == explanation.words[pair.second].side:
            rises[side] = max(rises[side], _rise(abs(middle[pair.second] - middle[pair.first])))
    names = side_names(explanation)
    levels = [MARGIN + rises[0] + OFF + 22 + side * BETWEEN for side in range(len(names))]
    labels = [levels[0] - OFF - rises[0] - 8, levels[-1] + OFF + rises[1] + 16]
    width = max(chip.left + chip.width for chip in chips) + MARGIN
    height = levels[-1] + OFF + rises[1] + 26
    largest = max((abs(pair.interaction) for pair in pairs), default=1.0)
    strongest = max((abs(value) for value in explanation.importance), default=0.0) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" aria-label="{said_of_pairs(explanation, pairs)}">'
    ]
    parts += [_arc(explanation, pair, middle, levels, largest) for pair in reversed(pairs)]
    parts += [
        f'<text class="row" x="{MARGIN:.0f}" y="{y:.1f}">{name}</text>' for name, y in zip(names, labels, strict=False)
    ]
    for chip in chips:
        part = explanation.words[chip.place].shapley / strongest if chip.place >= 0 else 0.0
        parts.append(_word(chip, levels[chip.side], part))
    return "".join([*parts, "</svg>"])


def _chips(explanation: Explanation, pairs: list[Pair]) -> list[Chip]:
    """Row by row, each in the middle of the page."""
    found: list[list[Chip]] = []
    for side, line in enumerate(rows(explanation, pairs)):
        left = MARGIN
        found.append([])
        for place in line:
            text = cut(explanation.words[place].text, LONGEST) if place >= 0 else "…"
            chip = Chip(place, side, left, LETTER * _columns(text) + 2 * PAD, text)
            found[-1].append(chip)
            left += chip.width + GAP
    ends = [row[-1].left + row[-1].width if row else MARGIN for row in found]
    return [
        Chip(chip.place, chip.side, chip.left + (max(ends) - end) / 2, chip.width, chip.text)
        for row, end in zip(found, ends, strict=True)
        for chip in row
    ]


def _arc(explanation: Explanation, pair: Pair, middle: dict[int, float], levels: list[float], largest: float) -> str:
    one, other = explanation.words[pair.first], explanation.words[pair.second]
    a, b, above, below = middle[pair.first], middle[pair.second], levels[one.side], levels[other.side]
    if one.side == other.side:
        bend = -1 if one.side == 0 else 1
        start = end = above + bend * OFF
        handle = start + bend * _rise(abs(b - a)) * 4 / 3  # the curve reaches three quarters of its handles
    else:
        start, end = above + OFF, below - OFF
        handle = (start + end) / 2
    kind = "synergy" if pair.interaction > 0 else "antagonism"
    said = escaped(f"{cut(one.text, 40)} – {cut(other.text, 40)}: {signed(pair.interaction)}")
    return (
        f'<path class="arc {kind}" stroke-width="{1 + 5 * abs(pair.interaction) / largest:.1f}" '
        f'd="M{a:.1f} {start:.1f}C{a:.1f} {handle:.1f} {b:.1f} {handle:.1f} {b:.1f} {end:.1f}">'
        f"<title>{said}</title></path>"
    )


def _word(chip: Chip, y: float, part: float) -> str:
    name, back, front = shade(part), "", ""
    if name:
        size = f'width="{chip.width:.1f}" height="{TALL:.0f}" rx="4"'
        back = f'<rect class="g{name}" x="{chip.left:.1f}" y="{y - TALL / 2:.1f}" {size}/>'
        front = f' class="t{name}"'
    where = f'x="{chip.middle:.1f}" y="{y + 4.5:.1f}" text-anchor="middle"'
    return f"{back}<text{front} {where}>{escaped(chip.text)}</text>"


def _rise(span: float) -> float:
    return 16 + 130 * (1 - math.exp(-span / 450))


def _columns(text: str) -> int:
    """Of a terminal: two for wide characters, none for those that join the one before."""

    def wide(mark: str) -> int:
        return 2 if unicodedata.east_asian_width(mark) in "WF" else 1

    return sum(0 if unicodedata.category(mark) in ("Mn", "Me", "Cf") else wide(mark) for mark in text)
