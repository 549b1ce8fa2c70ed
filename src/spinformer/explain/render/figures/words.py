"""The words of one or two texts, coloured by their scores."""

from typing import TYPE_CHECKING

from spinformer._base import checks
from spinformer._base.extras import require
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render import canvas
from spinformer.explain.render.layout import explained_class, largest, score_name, side_names

if TYPE_CHECKING:
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

FONT_SIZE = 13.0
# In inches: around the figure, between words, around a word, from line to line.
MARGIN, GAP, PADDING, LINE_HEIGHT = 0.3, 0.07, 0.05, 0.42
MIN_WIDTH = 3.0


def words_figure(record: ExplanationRecord, *, width: float = 7.5) -> "Figure":
    """Blue words speak for the explained class, orange ones, underlined with dots, against it; the bar shows the scale.

    width: of the figure, in inches; words are wrapped to it.
    """
    checks.positive("width", width)
    width = max(width, MIN_WIDTH)
    texts = _wrap(record, width - 2 * MARGIN)
    height = 1.55 + sum(0.3 + LINE_HEIGHT * len(lines) for lines in texts)
    figure = canvas.new_figure(width, height)
    axis = canvas.inches_axis(figure)
    colors, scale = canvas.signed_colors(), canvas.signed_scale(largest(record.importance))
    y = height - 0.35
    style = {"fontsize": 14, "fontweight": "bold", "color": canvas.INK, **canvas.PLAIN}
    axis.text(MARGIN, y, canvas.heading(record), va="center", **style)
    y -= 0.12
    for name, lines in zip(side_names(record), texts, strict=True):
        y -= 0.3
        axis.text(MARGIN, y, name, fontsize=9, color=canvas.GREY, va="center")
        for line in lines:
            y -= LINE_HEIGHT
            for x, box, text, score in line:
                against = score < -canvas.FAINT * largest(record.importance)
                canvas.draw_word(axis, MARGIN + x, y + 0.08, box, text, colors(scale(score)), FONT_SIZE, against)
    _color_bar(figure, colors, scale, record)
    return figure


def _color_bar(
    figure: "Figure", colors: "LinearSegmentedColormap", scale: "Normalize", record: ExplanationRecord
) -> None:
    width, height = figure.get_size_inches()
    axis = figure.add_axes((MARGIN / width, 0.52 / height, min(3.4, width - 2 * MARGIN) / width, 0.12 / height))
    mappable = require("matplotlib.cm", extra="plot").ScalarMappable(scale, colors)
    bar = figure.colorbar(mappable, cax=axis, orientation="horizontal")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=canvas.GREY, length=2)
    bar.ax.locator_params(nbins=5)
    subject = canvas.drawable_text(explained_class(record), 40)
    label = f"{score_name(record)}: against {subject} ← → for it"
    bar.ax.set_xlabel(label, fontsize=8, color=canvas.GREY, **canvas.PLAIN)


# Of each word where it begins, its width, what is drawn, its score.
Line = list[tuple[float, float, str, float]]


def _wrap(record: ExplanationRecord, room: float) -> list[list[Line]]:
    """The lines of each text, none wider than `room`."""
    ruler = canvas.new_figure(1, 1)
    texts: list[list[Line]] = []
    for side in range(len(record.texts)):
        lines: list[Line] = [[]]
        x = 0.0
        for word in record.words:
            if word.side != side:
                continue
            text, width = _fit(ruler, canvas.drawable_text(word.text), room)
            if x and x + width > room:
                lines.append([])
                x = 0.0
            lines[-1].append((x, width, text, word.importance))
            x += width + GAP
        texts.append(lines)
    return texts


def _fit(ruler: "Figure", text: str, room: float) -> tuple[str, float]:
    """The word with its width, cut where it is wider than `room`."""
    width = canvas.text_width(ruler, text, FONT_SIZE) + 2 * PADDING
    if width <= room:
        return text, width
    text = text[: max(1, int(len(text) * room / width) - 1)] + "…"
    return text, min(room, canvas.text_width(ruler, text, FONT_SIZE) + 2 * PADDING)
