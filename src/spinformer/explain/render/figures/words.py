"""The words of one or two texts, coloured by their scores."""

from typing import TYPE_CHECKING

from spinformer._base import checks
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render import canvas
from spinformer.explain.render.layout import side_names
from spinformer.explain.render.scale import scales_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FONT_SIZE, SMALL = 13.0, 9.5
# In inches: around the figure, between words, around a word, from line to line.
MARGIN, GAP, PADDING, LINE_HEIGHT = 0.3, 0.07, 0.05, 0.42
MIN_WIDTH = 3.0


def words_figure(record: ExplanationRecord, *, width: float = 7.5) -> "Figure":
    """Blue words speak for the explained class, orange ones, underlined with dots, against it; the bar shows the scale.

    Below the decision stand the notes and the probability with no words. width: of the figure, in inches; words are
    wrapped to it.
    """
    checks.positive("width", width)
    width = max(width, MIN_WIDTH)
    room = width - 2 * MARGIN
    scale, texts, facts = scales_of(record).words, _wrap(record, room), canvas.facts(record, SMALL, room)
    height = 1.75 + 0.0215 * SMALL * len(facts) + sum(0.3 + LINE_HEIGHT * len(lines) for lines in texts)
    figure = canvas.new_figure(width, height)
    axis = canvas.inches_axis(figure)
    y = height - 0.35
    style = {"fontsize": 14, "fontweight": "bold", "color": canvas.INK, **canvas.PLAIN}
    axis.text(MARGIN, y, canvas.heading(record), va="center", **style)
    y = canvas.draw_lines(axis, MARGIN, y - 0.3, facts, SMALL) + 0.15
    for name, lines in zip(side_names(record), texts, strict=True):
        y -= 0.3
        axis.text(MARGIN, y, name, fontsize=9, color=canvas.GREY, va="center")
        for line in lines:
            y -= LINE_HEIGHT
            for x, box, text, score in line:
                canvas.draw_word(axis, MARGIN + x, y + 0.08, box, text, scale.part(score), FONT_SIZE)
    canvas.score_bar(figure, record, scale, MARGIN + 0.1, 0.66, min(3.4, room - 0.2))
    return figure


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
            text = canvas.fit_text(ruler, canvas.drawable_text(word.text), FONT_SIZE, room - 2 * PADDING)
            width = min(room, canvas.text_width(ruler, text, FONT_SIZE) + 2 * PADDING)
            if x and x + width > room:
                lines.append([])
                x = 0.0
            lines[-1].append((x, width, text, word.importance))
            x += width + GAP
        texts.append(lines)
    return texts
