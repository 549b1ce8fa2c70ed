"""Pairs of words: a map of their interactions, and arcs between those that interact most."""

import math
from collections.abc import Sequence
from typing import Any

from spinformer.explain import layout
from spinformer.explain.explanation import Explanation, Pair
from spinformer.explain.layout import most_important, said_of_pairs, side_names, strongest_pairs
from spinformer.explain.pictures.canvas import (
    BLUE,
    GREY,
    INK,
    PLAIN,
    VERMILION,
    draw_chip,
    heading,
    inches_axis,
    new_figure,
    shown,
    signed_colours,
    symmetric,
    text_width,
)
from spinformer.extras import require

# Of a pair's line, in points.
THINNEST, THICKEST = 0.8, 5.0


def heat_map(explanation: Explanation, most: int = 40) -> Any:
    """Interactions of every two words: blue where they say more together, orange where one takes from the other.

    most: where there are more words than this, those with the largest Shapley values are taken, as the title says.
    """
    chosen = most_important(explanation, most)
    words = explanation.words
    matrix = explanation.interactions
    cells = [[float("nan") if i == j else matrix[i][j] for j in chosen] for i in chosen]
    size = 1.2 + max(2.6, min(11.0, 0.3 * len(chosen)))
    figure = new_figure(size + 1.1, size, layout="constrained")
    axis = figure.subplots()
    colours = signed_colours().with_extremes(bad="#E4E6EA")
    scale = symmetric([matrix[i][j] for i in chosen for j in chosen])
    picture = axis.imshow(cells, cmap=colours, norm=scale, interpolation="nearest")
    places = range(len(chosen))
    letters = max(5.0, min(10.0, 380 / max(len(chosen), 1)))
    labels = [shown(words[place].text, 16) for place in chosen]
    axis.set_xticks(places, labels, rotation=90, fontsize=letters, color=INK, **PLAIN)
    axis.set_yticks(places, labels, fontsize=letters, color=INK, **PLAIN)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    _cells_apart(axis, len(chosen))
    first = sum(words[place].side == 0 for place in chosen)
    if 0 < first < len(chosen):
        axis.axhline(first - 0.5, color=INK, linewidth=1.6)
        axis.axvline(first - 0.5, color=INK, linewidth=1.6)
    kept = f"\nthe {len(chosen)} most important of {len(words)} words" if len(chosen) < len(words) else ""
    axis.set_title(f"{heading(explanation)}: pairs of words{kept}", fontsize=11, color=INK, **PLAIN)
    bar = figure.colorbar(picture, ax=axis, shrink=0.7, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=GREY, length=2)
    bar.set_label("interaction: antagonism ← → synergy", fontsize=8, color=GREY)
    return figure


def _cells_apart(axis: Any, count: int) -> None:
    edges = [place - 0.5 for place in range(1, count)]
    axis.hlines(edges, -0.5, count - 0.5, color="white", linewidth=0.6)
    axis.vlines(edges, -0.5, count - 0.5, color="white", linewidth=0.6)


def arcs(explanation: Explanation, most: int = 12) -> Any:
    """Words, the premise above the hypothesis, and arcs between the pairs that interact most: solid blue for synergy,
    dashed orange for antagonism, the stronger the thicker. Words are coloured by their Shapley values.

    most: arcs. Of texts with many words, those without an arc are left out and shown as dots.
    """
    strongest = strongest_pairs(explanation, most)
    rows = [_row(explanation, places) for places in layout.rows(explanation, strongest)]
    lengths = [row[-1][0] + row[-1][1] if row else 0.0 for row in rows]
    longest = max(lengths)
    within = [_reach(rows[side], explanation, strongest) for side in range(len(rows))]
    between = 1.5 if len(rows) > 1 else 0.0
    below = within[1] if len(rows) > 1 else 0.0
    width, height = max(6.2, longest + 1.4), 1.55 + within[0] + between + below
    figure = new_figure(width, height)
    axis = inches_axis(figure)
    top = height - 0.75 - within[0]
    levels = [top, top - between][: len(rows)]
    lefts = [0.95 + (longest - length) / 2 for length in lengths]
    spots = {
        place: (lefts[side] + x + room / 2, levels[side]) for side, row in enumerate(rows) for x, room, _, place in row
    }
    largest = max((abs(pair.interaction) for pair in strongest), default=1.0)
    for pair in reversed(strongest):
        sides = explanation.words[pair.first].side, explanation.words[pair.second].side
        bend = 0.0 if sides[0] != sides[1] else (1.0 if sides[0] == 0 else -1.0)
        _arc(axis, spots[pair.first], spots[pair.second], bend, pair.interaction / largest)
    colours, scale = signed_colours(), symmetric(explanation.importance)
    for row, left, level, name in zip(rows, lefts, levels, side_names(explanation), strict=True):
        axis.text(left - 0.12, level, name, ha="right", va="center", fontsize=8, color=GREY)
        for x, room, text, place in row:
            value = explanation.words[place].shapley if place >= 0 else 0.0
            draw_chip(axis, left + x, level, room, text, colours(scale(value)), 11.0, value < -0.05 * scale.vmax)
    axis.text(
        0.25,
        height - 0.3,
        f"{heading(explanation)}: {said_of_pairs(explanation, strongest)}",
        fontsize=12,
        color=INK,
        va="center",
        **PLAIN,
    )
    _legend(axis, largest)
    return figure


Row = list[tuple[float, float, str, int]]


def _row(explanation: Explanation, places: Sequence[int]) -> Row:
    """The words of one text: where each begins, its width, what is shown, its place, -1 for dots."""
    ruler = new_figure(1, 1)
    found: Row = []
    x = 0.0
    for place in places:
        text = shown(explanation.words[place].text, 20) if place >= 0 else "…"
        room = text_width(ruler, text, 11.0) + 0.12
        found.append((x, room, text, place))
        x += room + 0.1
    return found


def _reach(row: Row, explanation: Explanation, strongest: Sequence[Pair]) -> float:
    """Height of the room that the arcs within one text take."""
    middle = {place: x + room / 2 for x, room, _, place in row}
    inside = [pair for pair in strongest if explanation.words[pair.first].side == explanation.words[pair.second].side]
    spans = [abs(middle[pair.second] - middle[pair.first]) for pair in inside if pair.first in middle]
    return max((_rise(span) for span in spans), default=0.0)


def _rise(span: float) -> float:
    return 0.22 + 1.6 * (1 - math.exp(-span / 5))


def _arc(axis: Any, one: tuple[float, float], other: tuple[float, float], bend: float, strength: float) -> None:
    """bend: 1 above the row, -1 below it, 0 between two rows."""
    path, patches = require("matplotlib.path", extra="plot").Path, require("matplotlib.patches", extra="plot")
    (a, above), (b, below) = one, other
    off = 0.16
    if bend:
        tip = bend * _rise(abs(b - a)) * 4 / 3  # the curve reaches three quarters of its handles
        points = [(a, above + bend * off), (a, above + tip), (b, below + tip), (b, below + bend * off)]
    else:
        middle = (above + below) / 2
        points = [(a, above - off), (a, middle), (b, middle), (b, below + off)]
    curve = path(points, [path.MOVETO, path.CURVE4, path.CURVE4, path.CURVE4])
    axis.add_patch(
        patches.PathPatch(
            curve,
            facecolor="none",
            edgecolor=BLUE if strength > 0 else VERMILION,
            linestyle="-" if strength > 0 else (0, (3, 1.2)),
            linewidth=THINNEST + (THICKEST - THINNEST) * abs(strength),
            alpha=0.85,
            capstyle="butt",
        )
    )


def _legend(axis: Any, largest: float) -> None:
    line = require("matplotlib.lines", extra="plot").Line2D
    handles = [
        line([], [], color=BLUE, linewidth=2.5, label="synergy"),
        line([], [], color=VERMILION, linewidth=2.5, linestyle=(0, (3, 1.2)), label="antagonism"),
        line([], [], color=GREY, linewidth=THICKEST, label=f"strength {largest:.3f}"),
    ]
    axis.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.01, 0.0),
        ncols=3,
        frameon=False,
        fontsize=8,
        labelcolor=INK,
    )
