"""The words of a text or pair, coloured by how much each spoke for the decision."""

from typing import Any

from spinformer import checks
from spinformer.explain.explanation import Explanation
from spinformer.explain.layout import side_names
from spinformer.explain.pictures.canvas import (
    GREY,
    INK,
    PLAIN,
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

SIZE = 13.0
MARGIN, GAP, PAD, LINE = 0.3, 0.07, 0.05, 0.42
# A word this much weaker than the strongest is not marked as one that speaks against.
FAINT = 0.05


def words_figure(explanation: Explanation, *, width: float = 7.5) -> Any:
    """Blue words spoke for the decision, orange ones, underlined with dots, against it: Shapley values by the bar.

    width: of the figure, in inches; words are wrapped to it.
    """
    checks.positive("width", width)
    rows = _wrapped(explanation, max(width, 3.0) - 2 * MARGIN)
    names = side_names(explanation)
    height = 1.55 + sum(0.3 + LINE * len(lines) for lines in rows)
    figure = new_figure(max(width, 3.0), height)
    axis = inches_axis(figure)
    colours, scale = signed_colours(), symmetric(explanation.importance)
    y = height - 0.35
    axis.text(MARGIN, y, heading(explanation), fontsize=14, fontweight="bold", color=INK, va="center", **PLAIN)
    y -= 0.12
    for name, lines in zip(names, rows, strict=True):
        y -= 0.3
        axis.text(MARGIN, y, name, fontsize=9, color=GREY, va="center")
        for line in lines:
            y -= LINE
            for x, room, text, value in line:
                against = value < -FAINT * scale.vmax
                draw_chip(axis, MARGIN + x, y + 0.08, room, text, colours(scale(value)), SIZE, against)
    _bar(figure, colours, scale, figure.get_size_inches())
    return figure


def _bar(figure: Any, colours: Any, scale: Any, size: Any) -> None:
    width, height = size
    place = figure.add_axes((MARGIN / width, 0.52 / height, min(3.4, width - 2 * MARGIN) / width, 0.12 / height))
    mappable = require("matplotlib.cm", extra="plot").ScalarMappable(scale, colours)
    bar = figure.colorbar(mappable, cax=place, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=GREY, length=2)
    bar.ax.locator_params(nbins=5)
    bar.ax.set_xlabel("Shapley value: against the decision ← → for it", fontsize=8, color=GREY)


Line = list[tuple[float, float, str, float]]


def _wrapped(explanation: Explanation, room: float) -> list[list[Line]]:
    """For each text its lines: of each word where it begins, its width, what is shown and its value."""
    ruler = new_figure(1, 1)
    found: list[list[Line]] = []
    for side in range(len(explanation.texts)):
        lines: list[Line] = [[]]
        x = 0.0
        for word in explanation.words:
            if word.side != side:
                continue
            text, width = _fitting(ruler, shown(word.text), room)
            if x and x + width > room:
                lines.append([])
                x = 0.0
            lines[-1].append((x, width, text, word.shapley))
            x += width + GAP
        found.append(lines)
    return found


def _fitting(ruler: Any, text: str, room: float) -> tuple[str, float]:
    """The word with its width, cut where it is longer than a line."""
    width = text_width(ruler, text, SIZE) + 2 * PAD
    if width <= room:
        return text, width
    text = text[: max(1, int(len(text) * room / width) - 1)] + "…"
    return text, min(room, text_width(ruler, text, SIZE) + 2 * PAD)
