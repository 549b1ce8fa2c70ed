"""Pairs of words: a map of their interactions, and arcs between those that interact most."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spinformer._base.extras import require
from spinformer.explain.record import ExplanationRecord, Pair
from spinformer.explain.render import canvas
from spinformer.explain.render.characters import capitalize
from spinformer.explain.render.layout import (
    OMITTED,
    describe_pairs,
    noun,
    pair_map,
    pair_name,
    side_names,
    strongest_pairs,
    word_rows,
)
from spinformer.explain.render.scale import Scale, scales_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SIZE, SMALL = 11.0, 9.0
# Line widths of arcs, in points.
THINNEST, THICKEST = 0.8, 5.0
DASHES = (0, (3, 1.2))


def pairs_figure(record: ExplanationRecord, max_words: int = 40) -> "Figure":
    """The interaction of every two words: blue where they add more together than alone, orange where less.

    Notes stand above, the probability with no words below. max_words: of longer texts the words with the largest scores
    are shown, as the title says.
    """
    pairs = pair_map(record, max_words)
    count = len(pairs.words)
    cells = [[math.nan if i == j else value for j, value in enumerate(row)] for i, row in enumerate(pairs.values)]
    size = 1.2 + max(2.6, min(11.0, 0.3 * count))
    figure = canvas.new_figure(size + 1.1, size, layout="constrained")
    axis = figure.subplots()
    colors = canvas.signed_colors().with_extremes(bad="#E4E6EA")
    axis.imshow(cells, cmap=colors, norm=canvas.color_norm(pairs.scale), interpolation="nearest")
    style = {"fontsize": max(5.0, min(10.0, 380 / max(count, 1))), "color": canvas.INK, **canvas.PLAIN}
    labels = [canvas.drawable_text(word, 16) for word in pairs.words]
    axis.set_xticks(range(count), labels, rotation=90, **style)
    axis.set_yticks(range(count), labels, **style)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    edges = [index - 0.5 for index in range(1, count)]
    axis.hlines(edges, -0.5, count - 0.5, color="white", linewidth=0.6)
    axis.vlines(edges, -0.5, count - 0.5, color="white", linewidth=0.6)
    if pairs.border is not None:
        axis.axhline(pairs.border - 0.5, color=canvas.INK, linewidth=1.6)
        axis.axvline(pairs.border - 0.5, color=canvas.INK, linewidth=1.6)
    selection = f"\n{pairs.selection}" if pairs.selection else ""
    subject = f"pairs of {noun(record)}" if record.pairs or count < 2 else describe_pairs(record, [])
    title = f"{canvas.heading(record)}: {subject}{selection}"
    axis.set_title(title, fontsize=11, color=canvas.INK, **canvas.PLAIN)
    if record.pairs:
        label = f"{pair_name(record)}: antagonism ← → synergy"
        canvas.color_bar(figure, pairs.scale, label, ax=axis, shrink=0.8, aspect=30)
    style = {"x": 0.02, "ha": "left", "fontsize": SMALL, **canvas.PLAIN}
    if lines := canvas.notes(record, SMALL, size + 0.8):
        figure.suptitle("\n".join(lines), color=canvas.ALERT, **style)
    if lines := canvas.base(record, SMALL, size + 0.8):
        figure.supxlabel("\n".join(lines), color=canvas.INK, **style)
    return figure


def arcs_figure(record: ExplanationRecord, max_pairs: int = 12) -> "Figure":
    """The first text above the second, with arcs between the words of the strongest pairs.

    Arcs are solid blue for synergy, dashed orange for antagonism, and thicker where the interaction is stronger. Words
    are coloured by their scores; of long texts those without an arc are left out and shown as dots. Below the decision
    stand the notes and the probability with no words. max_pairs: arcs to draw.
    """
    scales = scales_of(record)
    pairs = strongest_pairs(record, max_pairs)
    rows = [_row(record, positions) for positions in word_rows(record, pairs)]
    lengths = [row[-1][0] + row[-1][1] if row else 0.0 for row in rows]
    rises = [_max_rise(row, record, pairs) for row in rows]
    between, below = (1.5, rises[1]) if len(rows) > 1 else (0.0, 0.0)
    width = max(7.2, max(lengths) + 1.4)
    facts = [(capitalize(describe_pairs(record, pairs)), canvas.GREY), *canvas.facts(record, SMALL, width - 0.5)]
    above = 0.75 + 0.0215 * SMALL * len(facts)
    height = above + rises[0] + between + below + 1.15
    figure = canvas.new_figure(width, height)
    axis = canvas.inches_axis(figure)
    top = height - above - rises[0]
    levels = [top, top - between][: len(rows)]
    lefts = [0.95 + (max(lengths) - length) / 2 for length in lengths]
    centers = {
        position: (left + x + box / 2, level)
        for row, left, level in zip(rows, lefts, levels, strict=True)
        for x, box, _, position in row
    }
    for pair in reversed(pairs):
        sides = record.words[pair.first].side, record.words[pair.second].side
        bend = 0.0 if sides[0] != sides[1] else (1.0 if sides[0] == 0 else -1.0)
        _draw_arc(axis, centers[pair.first], centers[pair.second], bend, scales.pairs.part(pair.interaction))
    for row, left, level, name in zip(rows, lefts, levels, side_names(record), strict=True):
        axis.text(left - 0.12, level, name, ha="right", va="center", fontsize=8, color=canvas.GREY)
        for x, box, text, position in row:
            part = 0.0 if position == OMITTED else scales.words.part(record.words[position].importance)
            canvas.draw_word(axis, left + x, level, box, text, part, FONT_SIZE)
    style = {"fontsize": 13, "fontweight": "bold", "color": canvas.INK, **canvas.PLAIN}
    axis.text(0.25, height - 0.3, canvas.heading(record), va="center", **style)
    canvas.draw_lines(axis, 0.25, height - 0.58, facts, SMALL)
    canvas.score_bar(figure, record, scales.words, 0.35, 0.6, 2.9)
    if pairs:
        _draw_legend(axis, record, scales.pairs)
    return figure


# Of each word where it begins, its width, what is drawn, its position.
Row = list[tuple[float, float, str, int]]


def _row(record: ExplanationRecord, positions: Sequence[int]) -> Row:
    """The words of one text side by side."""
    ruler = canvas.new_figure(1, 1)
    row: Row = []
    x = 0.0
    for position in positions:
        text = "…" if position == OMITTED else canvas.drawable_text(record.words[position].text, 20)
        width = canvas.text_width(ruler, text, FONT_SIZE) + 0.12
        row.append((x, width, text, position))
        x += width + 0.1
    return row


def _max_rise(row: Row, record: ExplanationRecord, pairs: Sequence[Pair]) -> float:
    """Height of the highest arc within one text."""
    middle = {position: x + width / 2 for x, width, _, position in row}
    within = [pair for pair in pairs if record.words[pair.first].side == record.words[pair.second].side]
    spans = [abs(middle[pair.second] - middle[pair.first]) for pair in within if pair.first in middle]
    return max((_rise(span) for span in spans), default=0.0)


def _rise(span: float) -> float:
    """Height of an arc over `span`."""
    return 0.22 + 1.6 * (1 - math.exp(-span / 5))


def _draw_arc(axis: "Axes", start: tuple[float, float], end: tuple[float, float], bend: float, strength: float) -> None:
    """bend: 1 above the row, -1 below it, 0 between two rows; strength: part of the full width, -1 to 1."""
    path, patches = require("matplotlib.path", extra="plot").Path, require("matplotlib.patches", extra="plot")
    (a, above), (b, below) = start, end
    offset = 0.16
    if bend:
        handle = bend * _rise(abs(b - a)) * 4 / 3  # the curve reaches three quarters of its handles
        points = [(a, above + bend * offset), (a, above + handle), (b, below + handle), (b, below + bend * offset)]
    else:
        middle = (above + below) / 2
        points = [(a, above - offset), (a, middle), (b, middle), (b, below + offset)]
    curve = path(points, [path.MOVETO, path.CURVE4, path.CURVE4, path.CURVE4])
    style: dict[str, Any] = {"edgecolor": canvas.BLUE, "linestyle": "-"}
    if strength < 0:
        style = {"edgecolor": canvas.VERMILION, "linestyle": DASHES}
    width = THINNEST + (THICKEST - THINNEST) * abs(strength)
    axis.add_patch(patches.PathPatch(curve, facecolor="none", linewidth=width, alpha=0.85, capstyle="butt", **style))


def _draw_legend(axis: "Axes", record: ExplanationRecord, scale: Scale) -> None:
    """Lines of both signs, and of two strengths."""
    line = require("matplotlib.lines", extra="plot").Line2D
    handles = [
        line([], [], color=canvas.BLUE, linewidth=2.5, label="synergy"),
        line([], [], color=canvas.VERMILION, linewidth=2.5, linestyle=DASHES, label="antagonism"),
    ]
    for mark in scale.marks[-2:]:
        width = THINNEST + (THICKEST - THINNEST) * scale.part(mark)
        label = scale.label(mark).replace("+", "")
        handles.append(line([], [], color=canvas.GREY, linewidth=width, label=label))
    position: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (0.985, 0.02)}
    style: dict[str, Any] = {"ncols": 2, "frameon": False, "fontsize": 8, "title_fontsize": 8}
    title = f"{pair_name(record)} ({scale.remark})"
    axis.legend(handles=handles, title=title, labelcolor=canvas.INK, **style, **position)
