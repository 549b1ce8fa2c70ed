"""Means over many texts as bars: words and pairs of a set, of each class, and differences of two models.

The solid line on a bar is the 95% interval of a mean over texts; the dashed one is what it becomes if the game, which
predicts the classifier, errs alike in all texts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinformer._base.extras import require
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render import canvas
from spinformer.explain.render.layout import noun, pair_name, score_name, side_names
from spinformer.explain.render.scale import Scale, scales_of
from spinformer.explain.render.selection import shown_pairs, shown_words
from spinformer.explain.summary import DifferenceSummary, MeanOverTexts, Overview, WordDifference, WordSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SIZE, SMALL, ROW = 10.0, 8.5, 0.27
MAX_BARS, MAX_COLUMNS = 15, 3


@dataclass(frozen=True)
class MeanBar:
    """A mean, the name of what it is of, and half of its 95% interval, without the misfit of the game and with it."""

    name: str
    mean: float
    reach: float
    reach_with_misfit: float


def set_figure(overview: Overview, kind: str) -> "Figure":
    """kind: "words", how much each matters over all texts; "classes", its mean in each; "pairs", over all texts."""
    example, scales = overview.example, scales_of(overview.example)
    whole = overview.whole
    if kind == "words":
        bars = [
            MeanBar(_word(word, example), word.mean_abs, word.mean_abs_reach, word.mean_abs_reach)
            for word in whole.words[:MAX_BARS]
        ]
        title = f"The {noun(example)} that matter most in {whole.count:,} texts"
        return _panels([(title, bars)], f"mean |{score_name(example)}|", None)
    if kind == "pairs":
        bars = [_bar(f"{pair.first} – {pair.second}", pair) for pair in shown_pairs(whole, MAX_BARS)]
        return _panels([(f"Pairs in {whole.count:,} texts", bars)], f"mean {pair_name(example)}", scales.pairs)
    panels = [
        (
            f"{group.name}, {group.count:,} texts",
            [_bar(_word(word, example), word) for word in shown_words(group, MAX_BARS)],
        )
        for group in overview.classes
    ]
    return _panels(panels, f"mean {score_name(example)}", scales.words)


def difference_figure(difference: DifferenceSummary, example: ExplanationRecord, kind: str) -> "Figure":
    """The largest differences of two models, of words or of pairs."""
    one, other = difference.names
    scales = scales_of(example)
    if kind == "words":
        words = sorted(difference.words[:MAX_BARS], key=lambda each: -each.mean)
        bars = [_bar(_word(each, example), each) for each in words]
        name, scale = score_name(example), scales.words
    else:
        pairs = sorted(difference.pairs[:MAX_BARS], key=lambda each: -each.mean)
        bars = [_bar(f"{each.first} – {each.second}", each) for each in pairs]
        name, scale = pair_name(example), scales.pairs
    title = f"Weighed differently in {difference.compared:,} texts"
    return _panels([(title, bars)], f"mean difference of {name}: {one} − {other}", scale)


def _bar(name: str, mean: MeanOverTexts) -> MeanBar:
    return MeanBar(name, mean.mean, mean.reach, mean.reach_with_misfit)


def _word(word: WordSummary | WordDifference, example: ExplanationRecord) -> str:
    sides = side_names(example)
    return word.text if len(sides) == 1 else f"{word.text} ({sides[word.side].removesuffix(' text')})"


def _panels(panels: Sequence[tuple[str, Sequence[MeanBar]]], label: str, scale: Scale | None) -> "Figure":
    """Panels side by side, MAX_COLUMNS in a row, all with one axis of values."""
    columns = min(MAX_COLUMNS, len(panels))
    lines = math.ceil(len(panels) / columns)
    longest = max((len(bars) for _, bars in panels), default=1) or 1
    width = 7.5 if columns == 1 else 4.2 * columns
    engine = require("matplotlib.layout_engine", extra="plot").ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
    figure = canvas.new_figure(width, lines * (ROW * longest + 1.2), layout=engine)
    axes = figure.subplots(lines, columns, squeeze=False)
    ends = [end for _, bars in panels for bar in bars for end in _interval(bar, True)]
    low, high = min([0.0, *ends]) if scale else 0.0, max([0.0, *ends]) or 1.0
    room = 0.04 * (high - low)
    for place, axis in enumerate(axes.flat):
        if place >= len(panels):
            axis.set_axis_off()
            continue
        title, bars = panels[place]
        _draw(axis, bars, scale, longest)
        axis.set_xlim(low - (room if low < 0 else 0), high + room)
        style: dict[str, Any] = {"color": canvas.INK, "loc": "left", **canvas.PLAIN}
        axis.set_title(canvas.drawable_text(title, 60), fontsize=11, fontweight="bold", **style)
        axis.set_xlabel(canvas.drawable_text(label, 60), fontsize=SMALL, color=canvas.GREY, **canvas.PLAIN)
    return figure


def _draw(axis: "Axes", bars: Sequence[MeanBar], scale: Scale | None, rows: int) -> None:
    axis.set_ylim(rows - 0.4, -0.6)
    names = [canvas.drawable_text(bar.name, 30) for bar in bars]
    axis.set_yticks(range(len(bars)), names, fontsize=FONT_SIZE, color=canvas.INK, **canvas.PLAIN)
    for row, bar in enumerate(bars):
        face: Any = "#A9B0BA"
        edge = canvas.GREY
        if scale is not None:
            face = canvas.signed_colors()((scale.part(bar.mean) + 1) / 2)
            edge = canvas.BLUE if bar.mean >= 0 else canvas.VERMILION
        axis.barh(row, bar.mean, height=0.62, color=face, edgecolor=edge, linewidth=0.8, zorder=2)
        for with_misfit, style in ((True, (0, (2, 1.5))), (False, "-")):
            start, end = _interval(bar, with_misfit)
            if end > start and (bar.reach_with_misfit > bar.reach or not with_misfit):
                axis.plot([start, end], [row, row], color=canvas.INK, linewidth=1.1, linestyle=style, zorder=3)
    axis.axvline(0, color=canvas.INK, linewidth=0.8, zorder=2)
    axis.spines[["left", "right", "top"]].set_visible(False)
    axis.spines["bottom"].set_color(canvas.GREY)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=SMALL, colors=canvas.GREY, length=3)
    axis.grid(axis="x", color="#E4E6EA", linewidth=0.7)
    axis.set_axisbelow(True)


def _interval(bar: MeanBar, with_misfit: bool) -> tuple[float, float]:
    reach = bar.reach_with_misfit if with_misfit else bar.reach
    return bar.mean - reach, bar.mean + reach
