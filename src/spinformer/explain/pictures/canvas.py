"""What all pictures share: colours, text that is shown as text, chips of words, and files."""

import io
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spinformer import checks
from spinformer.explain.explanation import Explanation
from spinformer.extras import require

BLUE, VERMILION, GREY, INK = "#0072B2", "#D55E00", "#8A8F98", "#1B1F24"
MISSING = "\N{REPLACEMENT CHARACTER}"
# For every text that may come from outside: dollars are dollars, backslashes backslashes.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
SUFFIXES = (".png", ".svg")
_SALT = threading.Lock()


def ready() -> None:
    """Fail before any work where matplotlib is not installed."""
    require("matplotlib.figure", extra="plot")


def new_figure(width: float, height: float, **options: Any) -> Any:
    """An empty figure, in inches, with a canvas that can measure text."""
    figure = require("matplotlib.figure", extra="plot").Figure(figsize=(width, height), dpi=150, **options)
    require("matplotlib.backends.backend_agg", extra="plot").FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: Path | str) -> Path:
    """As PNG or SVG, by the suffix; the same figure gives the same bytes, at any time and in any process."""
    path = Path(path)
    checks.choice("the suffix of a picture", path.suffix.lower(), SUFFIXES)
    kept = io.BytesIO()
    if path.suffix.lower() == ".png":
        figure.savefig(kept, format="png", metadata={"Software": None})
    else:
        settings = require("matplotlib", extra="plot").rcParams
        with _SALT:  # matplotlib takes the salt of its identifiers from nowhere else
            before = settings["svg.hashsalt"]
            settings["svg.hashsalt"] = "spinformer"
            try:
                figure.savefig(kept, format="svg", metadata={"Date": None})
            finally:
                settings["svg.hashsalt"] = before
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(kept.getvalue())
    return path


def signed_colours() -> Any:
    """Vermilion for negative numbers through near white to blue for positive ones."""
    colors = require("matplotlib.colors", extra="plot")
    stops = ["#B34A00", VERMILION, "#F6B58A", "#F7F7F7", "#8CBFE0", BLUE, "#00558A"]
    return colors.LinearSegmentedColormap.from_list("spinformer_signed", stops)


def symmetric(values: Sequence[float]) -> Any:
    """A scale whose middle is 0 and that reaches the largest of `values` both ways."""
    largest = max((abs(value) for value in values), default=0.0) or 1.0
    return require("matplotlib.colors", extra="plot").Normalize(-largest, largest)


def ink_on(colour: Sequence[float]) -> str:
    """Dark or white, whichever is read better on `colour` (red, green, blue in 0..1), by relative luminance."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "white" if light < 0.19 else INK


def shown(text: str, longest: int | None = None) -> str:
    """`text` in one line of characters that the font has; what cannot be drawn becomes a replacement character.

    Control and direction marks are among these: they would change how the rest is read. longest: cut to so many.
    """
    marks = [mark if mark == " " or not mark.isspace() else " " for mark in text]
    drawn = [mark if mark.isprintable() and (mark == " " or _drawable(mark)) else MISSING for mark in marks]
    kept = [mark for place, mark in enumerate(drawn) if mark != MISSING or place == 0 or drawn[place - 1] != MISSING]
    line = "".join(kept)
    return line if longest is None or len(line) <= longest else line[: longest - 1] + "…"


def _drawable(mark: str) -> bool:
    if mark.isascii():
        return True
    manager = require("matplotlib.font_manager", extra="plot")
    for family in manager.FontProperties().get_family():  # as matplotlib does: one font for each, then the next
        font = manager.get_font(manager.findfont(manager.FontProperties(family=[family])))
        if font.get_char_index(ord(mark)):
            return True
    return False


def text_width(figure: Any, text: str, size: float) -> float:
    """Inches."""
    properties = require("matplotlib.font_manager", extra="plot").FontProperties(size=size)
    width, _, _ = figure.canvas.get_renderer().get_text_width_height_descent(text, properties, False)
    return float(width) / float(figure.dpi)


def draw_chip(
    axis: Any, x: float, y: float, width: float, text: str, colour: Sequence[float], size: float, against: bool = False
) -> None:
    """A word on a rounded ground, its left end at x and its middle at y, in inches; against: underlined with dots, so
    that its sign is read without colours too.
    """
    height = 0.024 * size
    patch = require("matplotlib.patches", extra="plot").FancyBboxPatch(
        (x, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.05", facecolor=colour, linewidth=0
    )
    axis.add_patch(patch)
    axis.text(
        x + width / 2, y - 0.005, text, ha="center", va="center_baseline", color=ink_on(colour), fontsize=size, **PLAIN
    )
    if against:
        low = y - height / 2 - 0.018
        axis.plot([x + 0.03, x + width - 0.03], [low, low], color=VERMILION, linewidth=1.3, linestyle=":")


def inches_axis(figure: Any) -> Any:
    """An axis over the whole figure whose unit is an inch from its lower left corner, without frame."""
    axis = figure.add_axes((0, 0, 1, 1))
    width, height = figure.get_size_inches()
    axis.set_xlim(0, width)
    axis.set_ylim(0, height)
    axis.set_axis_off()
    return axis


def heading(explanation: Explanation) -> str:
    """What was decided, and how surely."""
    return f"{shown(explanation.label, 60)} ({explanation.probabilities[explanation.label]:.1%})"
