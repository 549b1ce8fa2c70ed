"""One line from the probability of no words to that of all: what pushes it up, and what pushes it down.

    start = v(all) - sum of positive values          blue arrows lead from start up to v(all)
    end   = v(all) - sum of negative values          orange arrows lead from end down to v(all)

v(no words) lies between start and end, since all values together lead from it to v(all).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinformer._base.extras import require
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render import canvas
from spinformer.explain.render.layout import answer, noun, subject
from spinformer.explain.render.ranking import Bar, check_adds_up, rest_bar, word_bars
from spinformer.explain.render.scale import scales_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT_SIZE, SMALL = 10.0, 8.5
# In inches: of the figure, around it, half of an arrow's height, its point, from one row of labels to the next.
WIDTH, MARGIN, HALF, TIP, LEVEL = 9.0, 0.35, 0.14, 0.07, 0.34
# Words with less than this part of the whole line are one arrow together, one for each direction.
SMALLEST = 0.03


@dataclass(frozen=True)
class Push:
    """An arrow from `start` to `end`, in units of the axis, of a word or of many together."""

    bar: Bar
    start: float
    end: float


def force_figure(record: ExplanationRecord, max_words: int = 12) -> "Figure":
    """Blue arrows push the probability up, orange ones push it down; both meet at the probability with all words.

    The mark on the axis is the probability with no words. max_words: of them, and those too weak to be seen, the others
    of each direction are one arrow together. A method whose values do not add up is a ValueError.
    """
    check_adds_up("force", record)
    assert record.base_value is not None
    pushes = force_pushes(record, max_words)
    low, high = (choose([record.base_value, record.full_value, *(p.start for p in pushes)]) for choose in (min, max))
    span = (high - low) or 1.0
    room = WIDTH - 2 * MARGIN
    unit = room / (1.04 * span)  # inches

    def place(value: float) -> float:
        return MARGIN + 0.02 * room + (value - low) * unit

    facts = canvas.facts(record, SMALL + 0.5, room)
    title = canvas.wrap_text(canvas.heading(record), 15.0, room)
    labels = _Labels(pushes, [place((push.start + push.end) / 2) for push in pushes])
    above = 0.2 + 0.28 * len(title) + 0.0215 * (SMALL + 0.5) * len(facts) + 0.78
    height = above + HALF * 2 + 0.32 + (LEVEL + 0.06) * labels.levels + 0.32
    figure = canvas.new_figure(WIDTH, height)
    axis = canvas.inches_axis(figure)
    style: dict[str, Any] = {"color": canvas.INK, "va": "center", **canvas.PLAIN}
    for number, line in enumerate(title):
        axis.text(MARGIN, height - 0.3 - 0.28 * number, line, fontsize=13, fontweight="bold", **style)
    canvas.draw_lines(axis, MARGIN, height - 0.3 - 0.28 * len(title), facts, SMALL + 0.5)
    y = height - above - HALF
    scale = scales_of(record).words
    for push in pushes:
        _draw_push(axis, place(push.start), place(push.end), y, push.bar, scale.part(push.bar.value))
    labels.draw(axis, y - HALF, place)
    _draw_marks(axis, record, place, y)
    caption = f"{subject(record, lambda name: canvas.drawable_text(name, 40))}: → pushed up, ← pushed down"
    axis.text(MARGIN, 0.25, caption, fontsize=SMALL, **{**style, "color": canvas.GREY})
    return figure


def force_pushes(record: ExplanationRecord, max_words: int) -> list[Push]:
    """The arrows from left to right: upwards ones, the weakest first, then downwards ones, the strongest first."""
    bars = [*word_bars(record, len(record.words)), *rest_bar(record)]
    whole = sum(abs(bar.value) for bar in bars)
    strong = [bar for bar in bars[:max_words] if abs(bar.value) >= SMALLEST * whole]
    weak = [bar for bar in bars if bar not in strong]
    pushes: list[Push] = []
    up = [*_together([bar for bar in weak if bar.value > 0], record), *reversed([b for b in strong if b.value > 0])]
    down = [*(bar for bar in strong if bar.value < 0), *_together([bar for bar in weak if bar.value < 0], record)]
    at = record.full_value - sum(bar.value for bar in up)
    for bar in up:
        pushes.append(Push(bar, at, at + bar.value))
        at += bar.value
    for bar in down:
        pushes.append(Push(bar, at - bar.value, at))
        at -= bar.value
    return pushes


def _together(bars: Sequence[Bar], record: ExplanationRecord) -> list[Bar]:
    if len(bars) < 2:
        return list(bars)
    return [Bar(f"{len(bars)} other {noun(record)}", "", sum(bar.value for bar in bars), single=False)]


def _draw_push(axis: "Axes", start: float, end: float, y: float, bar: Bar, part: float) -> None:
    """An arrow; start, end: in inches."""
    sign = 1 if bar.value >= 0 else -1
    tip = sign * min(TIP, abs(end - start))
    outline = [(start, y + HALF), (end - tip, y + HALF), (end, y), (end - tip, y - HALF), (start, y - HALF)]
    face: Any = canvas.signed_colors()((part + 1) / 2) if bar.single else "#E4E6EA"
    edge = canvas.BLUE if sign > 0 else canvas.VERMILION
    notch = [(start + min(tip, 0) if sign < 0 else start + tip, y)]
    polygon = require("matplotlib.patches", extra="plot").Polygon
    axis.add_patch(polygon([*outline, *notch], closed=True, facecolor=face, edgecolor=edge, linewidth=0.9))


def _draw_marks(axis: "Axes", record: ExplanationRecord, place: Any, y: float) -> None:
    """The probabilities of no words and of all, above the line, side by side where they are close."""
    assert record.base_value is not None
    base, full = place(record.base_value), place(record.full_value)
    texts = [f"no {noun(record)} {record.base_value:.3f}", f"all {noun(record)} {record.full_value:.3f}"]
    if record.against is None and record.outputs != "scores":
        texts[1] = f"{canvas.drawable_text(record.target, 24)} {answer(record, record.target)}"
    ruler = canvas.new_figure(1, 1)
    base_width, full_width = (canvas.text_width(ruler, text, FONT_SIZE) for text in texts)
    widths = [base_width, 1.12 * full_width]  # bold letters are wider
    middles = _spread([base, full], [width + 0.2 for width in widths])
    for x, middle, text, bold in zip((base, full), middles, texts, (False, True), strict=True):
        color = canvas.INK if bold else canvas.GREY
        axis.plot([x, x, middle], [y - HALF - 0.05, y + HALF + 0.09, y + HALF + 0.24], color=color, linewidth=1.2)
        style: dict[str, Any] = {"ha": "center", "va": "bottom", "color": color, **canvas.PLAIN}
        weight = "bold" if bold else "normal"
        axis.text(middle, y + HALF + 0.27, text, fontsize=FONT_SIZE, fontweight=weight, **style)


class _Labels:
    """The words below their arrows, spread so that none covers another, in as many rows as they need."""

    def __init__(self, pushes: Sequence[Push], middles: Sequence[float]) -> None:
        ruler = canvas.new_figure(1, 1)
        self.pushes, self.levels = pushes, 1
        self.texts = [canvas.drawable_text(push.bar.text, 18) for push in pushes]
        widths = [
            0.14 + max(canvas.text_width(ruler, text, FONT_SIZE), canvas.text_width(ruler, _value(push.bar), SMALL))
            for text, push in zip(self.texts, pushes, strict=True)
        ]
        while self.levels < 4 and sum(widths) > self.levels * (WIDTH - 2 * MARGIN):
            self.levels += 1
        self.places = [0.0] * len(pushes)
        for level in range(self.levels):
            chosen = list(range(level, len(pushes), self.levels))
            spread = _spread([middles[index] for index in chosen], [widths[index] for index in chosen])
            for index, x in zip(chosen, spread, strict=True):
                self.places[index] = x

    def draw(self, axis: "Axes", top: float, place: Any) -> None:
        """Each word with its value, and a line to its arrow."""
        for index, (push, text, x) in enumerate(zip(self.pushes, self.texts, self.places, strict=True)):
            y = top - 0.32 - (index % self.levels) * (LEVEL + 0.06)
            color = canvas.BLUE if push.bar.value > 0 else canvas.ALERT
            middle = place((push.start + push.end) / 2)
            axis.plot([middle, x], [top - 0.03, y + 0.11], color=canvas.GREY, linewidth=0.6)
            paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # hides lines of other words
            style: dict[str, Any] = {"ha": "center", "va": "center", "bbox": paper, **canvas.PLAIN}
            axis.text(x, y, text, fontsize=FONT_SIZE, color=canvas.INK, **style)
            axis.text(x, y - 0.16, _value(push.bar), fontsize=SMALL - 0.5, color=color, **style)


def _spread(middles: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Middles as near as can be to those wanted, in their order, so that boxes of these widths do not overlap.

    Boxes are pushed to the right where they overlap, then back to the left where they leave the figure.
    """
    order = sorted(range(len(middles)), key=lambda index: middles[index])
    placed = list(middles)
    for edge, indices in ((-1, order), (1, order[::-1])):
        limit = MARGIN if edge < 0 else WIDTH - MARGIN
        for index in indices:
            reach = limit - edge * widths[index] / 2
            placed[index] = max(placed[index], reach) if edge < 0 else min(placed[index], reach)
            limit = placed[index] - edge * widths[index] / 2
    return placed


def _value(bar: Bar) -> str:
    return f"{bar.value:+.3f}".replace("-", "−")
