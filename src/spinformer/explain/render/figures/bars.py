"""Values of the words as bars: by size, and as steps from no words to all words.

bar:        |value| decides the order; the line on each bar is its 95% interval
waterfall:  v(no words) + value 1 + value 2 + ... = v(all words), each bar begins where the last one ended
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from spinformer._base.extras import require
from spinformer.explain.record import DEVIATIONS, ExplanationRecord
from spinformer.explain.render import canvas
from spinformer.explain.render.layout import noun, score_name, subject
from spinformer.explain.render.ranking import Bar, check_adds_up, rest_bar, word_bars
from spinformer.explain.render.scale import Scale, scales_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SIZE, SMALL = 10.5, 8.5
# In inches: of the figure, around it, of a row, of the widest label.
WIDTH, MARGIN, ROW, MAX_LABEL = 7.5, 0.3, 0.3, 2.3
# In inches: half of a bar's height, the point of an arrow, between a bar and its number.
HALF, TIP, GAP = 0.09, 0.07, 0.07


def bar_figure(record: ExplanationRecord, max_words: int = 20) -> "Figure":
    """The words by the size of their values, with 95% intervals where standard errors are known.

    Colours are those of the words in other pictures. Above stand the notes and the probability with no words.
    max_words: the other words of longer texts are one bar together.
    """
    bars = word_bars(record, max_words)
    known = any(bar.stderr is not None for bar in bars)
    caption = score_name(record) + (", with 95% intervals" if known else "")
    ends = [0.0, *(bar.value + sign * _reach(bar) for bar in bars for sign in (-1, 1))]
    panel = _Panel(record, [(bar.text, bar.note) for bar in bars], ends, caption, [_number(bar) for bar in bars])
    panel.axis.axvline(0, color=canvas.INK, linewidth=0.8)
    for row, bar in enumerate(bars):
        panel.draw_bar(row, 0.0, bar)
        ends_at = max(0.0, bar.value + _reach(bar)) if bar.value >= 0 else min(0.0, bar.value - _reach(bar))
        if bar.stderr:
            panel.draw_interval(row, bar)
        panel.write(row, ends_at, _number(bar), bar.value >= 0)
    return panel.figure


def waterfall_figure(record: ExplanationRecord, max_words: int = 15) -> "Figure":
    """From the probability of no words to that of all, word by word, the largest value first.

    The values are those of the words, so the last step ends at the probability. max_words: the other words of longer
    texts are one step together. A method whose values do not add up is a ValueError.
    """
    check_adds_up("waterfall", record)
    assert record.base_value is not None
    bars = [*word_bars(record, max_words), *rest_bar(record)]
    starts = list(accumulate((bar.value for bar in bars), initial=record.base_value))
    labels = [(f"no {noun(record)}", ""), *((bar.text, bar.note) for bar in bars), (f"all {noun(record)}", "")]
    caption = subject(record, lambda name: canvas.drawable_text(name, 40))
    panel = _Panel(record, labels, starts, caption, [_number(bar) for bar in bars])
    for row, value in ((0, record.base_value), (len(bars) + 1, record.full_value)):
        panel.draw_mark(row, value)
    for row, bar in enumerate(bars, 1):
        start, end = starts[row - 1], starts[row]
        panel.draw_bar(row, start, bar)
        panel.draw_link(row - 1, start)
        panel.write(row, max(start, end), _number(bar), right=True)
    panel.draw_link(len(bars), starts[-1])
    return panel.figure


class _Panel:
    """Rows with a label on the left and an axis of values on the right; `draw_` and `write` fill it."""

    def __init__(
        self,
        record: ExplanationRecord,
        labels: Sequence[tuple[str, str]],
        ends: Sequence[float],
        caption: str,
        numbers: Sequence[str],
    ) -> None:
        """ends: numbers that the axis must hold; numbers: what will stand right of a bar, or left of it."""
        room = WIDTH - 2 * MARGIN
        ruler = canvas.new_figure(1, 1)
        shown = [_label(ruler, text, note) for text, note in labels]
        left = MARGIN + max(width for _, _, width, _ in shown) + 0.12
        facts = canvas.facts(record, SMALL + 0.5, room)
        title = canvas.wrap_text(canvas.heading(record), 15.0, room)  # bold letters are wider than they are measured
        above = 0.2 + 0.28 * len(title) + 0.0215 * (SMALL + 0.5) * len(facts) + 0.1
        below = 0.75
        height = above + ROW * len(shown) + below
        self.figure = canvas.new_figure(WIDTH, height)
        self.inches = canvas.inches_axis(self.figure)
        width = WIDTH - left - MARGIN
        place = (left / WIDTH, below / height, width / WIDTH, ROW * len(shown) / height)
        self.axis: Axes = self.figure.add_axes(place)
        self.scale: Scale = scales_of(record).words
        self.rows, self.height = len(shown), height - above
        style: dict[str, Any] = {"color": canvas.INK, "va": "center", **canvas.PLAIN}
        for number, line in enumerate(title):
            self.inches.text(MARGIN, height - 0.3 - 0.28 * number, line, fontsize=13, fontweight="bold", **style)
        canvas.draw_lines(self.inches, MARGIN, height - 0.3 - 0.28 * len(title), facts, SMALL + 0.5)
        for row, (text, note, _, note_width) in enumerate(shown):
            y = self.height - (row + 0.5) * ROW
            self.inches.text(left - 0.12, y, note, fontsize=SMALL - 1, ha="right", **{**style, "color": canvas.GREY})
            self.inches.text(left - 0.12 - note_width, y, text, fontsize=FONT_SIZE, ha="right", **style)
        self._set_axis(ends, numbers, width, caption)

    def _set_axis(self, ends: Sequence[float], numbers: Sequence[str], width: float, caption: str) -> None:
        """Limits that leave room for the numbers at both ends."""
        low, high = min(ends), max(ends)
        span = (high - low) or 1.0
        text = max((canvas.text_width(self.figure, number, SMALL) for number in numbers), default=0.0) + 2 * GAP
        part = min(0.35, text / width)
        both = low < 0 < high or low < 0 == high
        scale = span / (1 - part * (2 if both else 1) - 0.02)
        self.unit = scale / width  # of the axis, in an inch
        self.axis.set_xlim(low - scale * (part if both else 0.01), high + scale * part)
        self.axis.set_ylim(self.rows, 0)
        self.axis.set_yticks([])
        self.axis.spines[["left", "right", "top"]].set_visible(False)
        self.axis.spines["bottom"].set_color(canvas.GREY)
        self.axis.tick_params(axis="x", labelsize=SMALL - 0.5, colors=canvas.GREY, length=3)
        self.axis.locator_params(axis="x", nbins=7)
        self.axis.grid(axis="x", color="#E4E6EA", linewidth=0.7)
        self.axis.set_axisbelow(True)
        self.axis.set_xlabel(caption, fontsize=SMALL, color=canvas.GREY, **canvas.PLAIN)

    def draw_bar(self, row: int, start: float, bar: Bar) -> None:
        """An arrow from `start` by the bar's value, in the colour of the value; grey where it is not one word."""
        end, middle = start + bar.value, row + 0.5
        half, tip = HALF / ROW, min(TIP * self.unit, abs(bar.value))
        shoulder = end - tip if bar.value >= 0 else end + tip
        points = [(start, middle - half), (shoulder, middle - half), (end, middle), (shoulder, middle + half)]
        face: Any = "#D9DDE3"
        edge = canvas.GREY
        if bar.single:
            face = canvas.signed_colors()((self.scale.part(bar.value) + 1) / 2)
            edge = canvas.BLUE if bar.value >= 0 else canvas.VERMILION
        polygon = require("matplotlib.patches", extra="plot").Polygon
        style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linewidth": 0.8, "joinstyle": "round"}
        self.axis.add_patch(polygon([*points, (start, middle + half)], closed=True, zorder=2, **style))

    def draw_interval(self, row: int, bar: Bar) -> None:
        """The 95% interval of a bar that begins at 0."""
        low, high, middle = bar.value - _reach(bar), bar.value + _reach(bar), row + 0.5
        style: dict[str, Any] = {"color": canvas.INK, "linewidth": 1.1, "zorder": 3}
        self.axis.plot([low, high], [middle, middle], **style)
        for end in (low, high):
            self.axis.plot([end, end], [middle - 0.11, middle + 0.11], **style)

    def draw_link(self, row: int, value: float) -> None:
        """A thin line from a row to the next, where one step ends and the next begins."""
        self.axis.plot([value, value], [row + 0.5, row + 1.5], color=canvas.GREY, linewidth=0.7, zorder=1)

    def draw_mark(self, row: int, value: float) -> None:
        """A probability: a mark and its number."""
        self.axis.plot([value, value], [row + 0.14, row + 0.86], color=canvas.INK, linewidth=2.4, zorder=3)
        self.write(row, value, f"{value:.3f}".replace("-", "−"), right=True, bold=True)

    def write(self, row: int, value: float, text: str, right: bool, bold: bool = False) -> None:
        """A number beside the end of a bar, right of it or left."""
        x = value + (GAP if right else -GAP) * self.unit
        style: dict[str, Any] = {"fontsize": SMALL, "color": canvas.INK, **canvas.PLAIN}
        style |= {"fontweight": "bold"} if bold else {}
        self.axis.text(x, row + 0.5, text, ha="left" if right else "right", va="center", zorder=4, **style)


def _label(ruler: "Figure", text: str, note: str) -> tuple[str, str, float, float]:
    """A label that fits: its text, its note, the width of both in inches, and that of the note."""
    note_width = canvas.text_width(ruler, note, SMALL - 1) + 0.06 if note else 0.0
    fitting = canvas.fit_text(ruler, canvas.drawable_text(text), FONT_SIZE, MAX_LABEL - note_width)
    return fitting, note, canvas.text_width(ruler, fitting, FONT_SIZE) + note_width, note_width


def _reach(bar: Bar) -> float:
    """Half of the 95% interval, 0 where it is not known."""
    return DEVIATIONS * (bar.stderr or 0.0)


def _number(bar: Bar) -> str:
    """The value with its sign, and its standard error."""
    error = "" if bar.stderr is None else f" ± {bar.stderr:.3f}"
    return f"{bar.value:+.3f}".replace("-", "−") + error
