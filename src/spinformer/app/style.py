"""How the page looks: fonts that every system has, and colours that are safe for colour-blind readers."""

from importlib.resources import files
from typing import Any

from spinformer._base.extras import require
from spinformer.explain.render.style import shade_rules

FONT = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif"]
MONO = ["ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"]
# Of Gradio's theme: each colour in light and in dark mode.
COLORS = {
    "button_primary_background_fill": ("#0b5c8f", "#2a7fb8"),
    "button_primary_background_fill_hover": ("#084a73", "#3a90c9"),
    "slider_color": ("#0b5c8f", "#56a8dc"),
    "block_info_text_color": ("#566070", "#a8b1bd"),
    "block_title_text_color": ("#334155", "#dbe2ea"),
}


def theme() -> Any:
    """Gradio's base theme with system fonts, so that nothing is fetched."""
    gradio = require("gradio", extra="app")
    base = gradio.themes.Base(primary_hue="blue", neutral_hue="slate", radius_size="md", font=FONT, font_mono=MONO)
    light = {name: colors[0] for name, colors in COLORS.items()}
    dark = {f"{name}_dark": colors[1] for name, colors in COLORS.items()}
    white = {"button_primary_text_color": "#ffffff", "button_primary_text_color_dark": "#ffffff"}
    return base.set(**light, **dark, **white, block_title_text_weight="600")


def css() -> str:
    """The page's own rules, and the report's shades for words, arcs and pairs."""
    return "\n".join(
        [asset("page.css"), shade_rules(dark=False, scope=".result"), shade_rules(dark=True, scope=".dark .result")]
    )


def asset(name: str) -> str:
    """The text of a file in `app/assets`."""
    return (files("spinformer.app") / "assets" / name).read_text(encoding="utf-8")
