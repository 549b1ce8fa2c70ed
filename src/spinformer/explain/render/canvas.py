"""What all figures share: colours, text that is drawn as text, words on coloured boxes, and files."""

import io
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinformer._base import checks
from spinformer._base.extras import require
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.characters import REPLACEMENT, shorten
from spinformer.explain.render.layout import decision

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure

BLUE, VERMILION, GREY, INK = "#0072B2", "#D55E00", "#8A8F98", "#1B1F24"
# For every text that may come from outside: dollars are dollars, backslashes are backslashes.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
SUFFIXES = (".png", ".svg")
# A score smaller than this part of the largest is too faint to be underlined as one against the class.
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
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())
    return path


def signed_colors() -> "LinearSegmentedColormap":
    """The colour map: vermilion for negative numbers through near white to blue for positive ones."""
    colors = require("matplotlib.colors", extra="plot")
    stops = ["#B34A00", VERMILION, "#F6B58A", "#F7F7F7", "#8CBFE0", BLUE, "#00558A"]
    return colors.LinearSegmentedColormap.from_list("spinformer_signed", stops)


def signed_scale(limit: float) -> "Normalize":
    """The scale of colours, from -limit to limit."""
    return require("matplotlib.colors", extra="plot").Normalize(-limit, limit)


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


def draw_word(
    axis: "Axes",
    x: float,
    y: float,
    width: float,
    text: str,
    color: Sequence[float],
    size: float,
    against: bool = False,
) -> None:
    """A word on a rounded box, its left end at x and its middle at y, in inches.

    against: underlined with dots, so that the sign is read without colours too.
    """
    height = 0.024 * size
    patch = require("matplotlib.patches", extra="plot").FancyBboxPatch(
        (x, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.05", facecolor=color, linewidth=0
    )
    axis.add_patch(patch)
    style = {"color": text_color_on(color), "fontsize": size, **PLAIN}
    axis.text(x + width / 2, y - 0.005, text, ha="center", va="center_baseline", **style)
    if against:
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


def heading(record: ExplanationRecord) -> str:
    """What was decided, and how surely."""
    return decision(record, lambda name: drawable_text(name, 60))
