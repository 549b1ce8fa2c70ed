"""Text and numbers for HTML: shown as they are, whatever they hold."""

import html
import unicodedata

from spinformer.explain.html_style import DEPTHS


def escaped(text: str) -> str:
    """Text as HTML. Characters that no document may hold, control characters but for space, are replaced."""
    kept = (mark if mark in "\t\n" or unicodedata.category(mark) not in ("Cc", "Cs") else "\ufffd" for mark in text)
    return html.escape("".join(kept), quote=True)


def isolated(text: str) -> str:
    """The same, its direction marks kept from the text around it."""
    return f"<bdi>{escaped(text)}</bdi>"


def cut(text: str, longest: int) -> str:
    """At most `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def signed(value: float, digits: int = 3) -> str:
    """With its sign, a minus that is one; 0 has none."""
    shown = f"{value:+.{digits}f}"
    return shown[1:] if float(shown) == 0 else shown.replace("-", "−")


def number(value: float | None, digits: int = 3) -> str:
    """A dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def shade(part: float) -> str:
    """The name of a colour: p1 (faint) to p10 for, n1 to n10 against, nothing at 0; part: of the strongest, -1 to 1."""
    depth = min(DEPTHS, round(DEPTHS * abs(part)))
    return "" if depth == 0 else f"{'p' if part > 0 else 'n'}{depth}"
