"""What all figures share: colours and their scale, text that is drawn as text, words on coloured boxes, and files."""

import io
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinformer._base import checks
from spinformer._base.characters import REPLACEMENT
from spinformer._base.extras import require
from spinformer._base.files import atomic_write
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.characters import capitalize, shorten
from spinformer.explain.render.layout import base_line, decision, explained_class, score_name
from spinformer.explain.render.scale import EXPONENT, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

BLUE, VERMILION, GREY, INK = "#0072B2", "#D55E00", "#6B727C", "#1B1F24"
# Of notes: vermilion, dark enough to be read.
ALERT = "#A34700"
# For every text that may come from outside: dollars are dollars, backslashes are backslashes.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
SUFFIXES = (".png", ".svg")
# A smaller part of the full colour is too faint to be underlined as a score against the class.
FAINT = 0.05
_SALT = threading.Lock()


def check_matplotlib() -> None:
    """Raise an error that names the extra to install, where matplotlib is missing."""
    require("matplotlib.figure", extra="plot")


def new_figure(width: float, height: float, **options: Any) -> "Figure":
    """An empty figure, in inches, with a canvas that can measure text."""
    figure: Figure = require("matplotlib.figure", extra="plot").Figure(figsize=(width, height), dpi=150, **options)
    require("matplotlib.backends.backend_agg", extra="plot").FigureCanvasAgg(figure)
    return figure


def save_figure(figure: "Figure", path: Path | str) -> Path:
    """Write PNG or SVG, by the suffix; the same figure gives the same bytes, at any time and in any process."""
    path = Path(path)
    checks.choice("the suffix of a picture", path.suffix.lower(), SUFFIXES)
    buffer = io.BytesIO()
    if path.suffix.lower() == ".png":
        figure.savefig(buffer, format="png", metadata={"Software": None})
    else:
        settings = require("matplotlib", extra="plot").rcParams
        with _SALT:  # matplotlib takes the salt of its identifiers from nowhere else
            before = settings["svg.hashsalt"]
            settings["svg.hashsalt"] = "spinformer"
            try:
                figure.savefig(buffer, format="svg", metadata={"Date": None})
            finally:
                settings["svg.hashsalt"] = before
    with atomic_write(path) as partial:
        partial.write_bytes(buffer.getvalue())
    return path


def signed_colors() -> "LinearSegmentedColormap":
    """The colour map: vermilion for negative numbers through near white to blue for positive ones."""
    colors = require("matplotlib.colors", extra="plot")
    return colors.LinearSegmentedColormap.from_list("spinformer_signed", [VERMILION, "#F7F7F7", BLUE])


def color_norm(scale: Scale) -> "Normalize":
    """The scale as matplotlib has them."""
    numpy = require("numpy", extra="plot")

    def forward(numbers: Any) -> Any:
        distance = numbers - scale.middle
        return numpy.sign(distance) * numpy.abs(distance) ** EXPONENT

    def inverse(parts: Any) -> Any:
        return scale.middle + numpy.sign(parts) * numpy.abs(parts) ** (1 / EXPONENT)

    colors = require("matplotlib.colors", extra="plot")
    return colors.FuncNorm((forward, inverse), scale.middle - scale.limit, scale.middle + scale.limit)


def color_bar(figure: "Figure", scale: Scale, label: str, **place: Any) -> None:
    """The colours with their numbers, and whether other texts have the same; place: where, as `Figure.colorbar` has it.

    Arrows at its ends stand for numbers beyond the limit.
    """
    mappable = require("matplotlib.cm", extra="plot").ScalarMappable(color_norm(scale), signed_colors())
    ends = "neither" if not scale.is_open else "both" if scale.signed else "max"
    bar = figure.colorbar(mappable, extend=ends, extendfrac=0.03, **place)
    bar.outline.set_visible(False)
    bar.set_ticks(list(scale.marks), labels=[scale.label(mark).lstrip("≤≥ ") for mark in scale.marks], minor=False)
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=7.5, colors=GREY, length=2)
    if not scale.signed:
        bar.ax.set_xlim(scale.middle, scale.middle + scale.limit)
    bar.set_label(f"{label}\n({scale.remark})", fontsize=8, color=GREY, **PLAIN)


def score_bar(figure: "Figure", record: ExplanationRecord, scale: Scale, x: float, y: float, width: float) -> None:
    """The colour bar of the words' scores, with its lower left corner at x, y, all in inches."""
    full_width, full_height = figure.get_size_inches()
    axis = figure.add_axes((x / full_width, y / full_height, width / full_width, 0.12 / full_height))
    subject = drawable_text(explained_class(record), 40)
    label = score_name(record) + (f": against {subject} ← → for it" if scale.signed else "")
    color_bar(figure, scale, label, cax=axis, orientation="horizontal")


def text_color_on(color: Sequence[float]) -> str:
    """Dark or white, whichever is read better on `color` (red, green, blue in 0..1), by relative luminance."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if luminance < 0.19 else INK


def drawable_text(text: str, max_length: int | None = None) -> str:
    """`text` in one line of characters that the font has, with one replacement character for each run of others.

    Control and direction marks are among those replaced: they would change how the rest is read. max_length: longer
    lines are cut.
    """
    line = ""
    for character in text:
        drawn = " " if character.isspace() else character if _is_drawable(character) else REPLACEMENT
        if drawn != REPLACEMENT or not line.endswith(REPLACEMENT):
            line += drawn
    return line if max_length is None else shorten(line, max_length)


def _is_drawable(character: str) -> bool:
    if not character.isprintable():
        return False
    if character.isascii():
        return True
    manager = require("matplotlib.font_manager", extra="plot")
    for family in manager.FontProperties().get_family():  # as matplotlib does: one font for each, then the next
        font = manager.get_font(manager.findfont(manager.FontProperties(family=[family])))
        if font.get_char_index(ord(character)):
            return True
    return False


def text_width(figure: "Figure", text: str, size: float) -> float:
    """Inches that `text` takes."""
    properties = require("matplotlib.font_manager", extra="plot").FontProperties(size=size)
    canvas: Any = figure.canvas
    width, _, _ = canvas.get_renderer().get_text_width_height_descent(text, properties, False)
    return float(width) / float(figure.dpi)


def wrap_text(text: str, size: float, room: float) -> list[str]:
    """The lines of `text`, broken at spaces, none wider than `room` inches; single words may be cut."""
    ruler = new_figure(1, 1)
    lines = [""]
    for word in drawable_text(text).split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(ruler, longer, size) > room:
            lines.append("")
            longer = word
        lines[-1] = longer
    return [fit_text(ruler, line, size, room) for line in lines]


def fit_text(ruler: "Figure", text: str, size: float, room: float) -> str:
    """`text`, cut where it is wider than `room` inches."""
    width = text_width(ruler, text, size)
    return text if width <= room else text[: max(1, int(len(text) * room / width) - 1)] + "…"


def draw_word(axis: "Axes", x: float, y: float, width: float, text: str, part: float, size: float) -> None:
    """A word on a rounded box, its left end at x and its middle at y, in inches.

    part: of the full colour, -1 to 1. Words against the class are underlined with dots, so that the sign is read
    without colours too.
    """
    height, color = 0.024 * size, signed_colors()((part + 1) / 2)
    patch = require("matplotlib.patches", extra="plot").FancyBboxPatch(
        (x, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.05", facecolor=color, linewidth=0
    )
    axis.add_patch(patch)
    style = {"color": text_color_on(color), "fontsize": size, **PLAIN}
    axis.text(x + width / 2, y - 0.005, text, ha="center", va="center_baseline", **style)
    if part < -FAINT:
        low = y - height / 2 - 0.018
        axis.plot([x + 0.03, x + width - 0.03], [low, low], color=VERMILION, linewidth=1.3, linestyle=":")


def inches_axis(figure: "Figure") -> "Axes":
    """An axis over the full figure whose unit is an inch from its lower left corner, without frame."""
    axis = figure.add_axes((0, 0, 1, 1))
    width, height = figure.get_size_inches()
    axis.set_xlim(0, width)
    axis.set_ylim(0, height)
    axis.set_axis_off()
    return axis


def draw_lines(axis: "Axes", x: float, y: float, lines: Sequence[tuple[str, str]], size: float) -> float:
    """Lines with their colours from y downwards; where the next one would be, in inches."""
    for text, color in lines:
        axis.text(x, y, text, fontsize=size, color=color, va="center", **PLAIN)
        y -= 0.0215 * size
    return y


def facts(record: ExplanationRecord, size: float, room: float) -> list[tuple[str, str]]:
    """Notes and the probability with no words: lines that fit into `room` inches, each with its colour."""
    return [*((line, ALERT) for line in notes(record, size, room)), *((line, INK) for line in base(record, size, room))]


def notes(record: ExplanationRecord, size: float, room: float) -> list[str]:
    """What a reader must know first, in lines that fit into `room` inches."""
    return [line for note in record.notes for line in wrap_text(f"Note: {note}", size, room)]


def base(record: ExplanationRecord, size: float, room: float) -> list[str]:
    """The probability with no words, in lines that fit into `room` inches; none where it is not known."""
    line = capitalize(base_line(record, lambda name: drawable_text(name, 60)))
    return wrap_text(line, size, room) if line else []


def heading(record: ExplanationRecord) -> str:
    """What was decided, and how surely."""
    return decision(record, lambda name: drawable_text(name, 60))
