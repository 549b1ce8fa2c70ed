"""How the page looks: fonts that every system has, two colours that colour-blind readers tell apart."""

from importlib.resources import files
from typing import Any

from spinformer.explain.html_style import DEPTHS, ground, ink
from spinformer.extras import require

FONT = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif"]
MONO = ["ui-monospace", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace"]


def theme() -> Any:
    """Gradio's base theme with system fonts alone: nothing is fetched."""
    gradio = require("gradio", extra="app")
    return gradio.themes.Base(primary_hue="blue", neutral_hue="slate", radius_size="md", font=FONT, font_mono=MONO).set(
        button_primary_background_fill="#0b5c8f",
        button_primary_background_fill_hover="#084a73",
        button_primary_background_fill_dark="#2a7fb8",
        button_primary_background_fill_hover_dark="#3a90c9",
        button_primary_text_color="#ffffff",
        button_primary_text_color_dark="#ffffff",
        slider_color="#0b5c8f",
        slider_color_dark="#56a8dc",
        block_info_text_color="#566070",
        block_info_text_color_dark="#a8b1bd",
        block_title_text_color="#334155",
        block_title_text_color_dark="#dbe2ea",
        block_title_text_weight="600",
    )


def css() -> str:
    """The page's own rules, with the report's ten depths of each colour for words and arcs."""
    return "\n".join([asset("page.css"), *_depths(".result", dark=False), *_depths(".dark .result", dark=True)])


def _depths(where: str, *, dark: bool) -> list[str]:
    rules = []
    for letter, sign in (("p", 1), ("n", -1)):
        for depth in range(1, DEPTHS + 1):
            back, front, name = f"rgb{ground(sign, depth, dark)}", f"rgb{ink(sign, depth, dark)}", f"{letter}{depth}"
            rules.append(f"{where} .{name} {{ background: {back}; color: {front}; }}")
            rules.append(f"{where} .g{name} {{ fill: {back}; }} {where} svg .t{name} {{ fill: {front}; }}")
    return rules


def asset(name: str) -> str:
    """A text that lies beside this module."""
    return (files("spinformer.app") / "assets" / name).read_text(encoding="utf-8")
