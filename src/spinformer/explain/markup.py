"""Text and numbers for HTML: shown as they are, whatever they hold."""

import html
import unicodedata

from spinformer.explain.html_style import DEPTHS

# Unicode's isolations of direction.
BEGINNINGS, END = "\u2066\u2067\u2068", "\u2069"


def escaped(text: str) -> str:
    """Text as HTML. What no document may hold is replaced: control characters but for space, half characters, and ends
    of isolation without a beginning, which would end ours.
    """
    kept, isolations = [], 0
    for mark in text:
        isolations += mark in BEGINNINGS
        bad = unicodedata.category(mark) in ("Cc", "Cs") and mark not in "\t\n"
        kept.append("\N{REPLACEMENT CHARACTER}" if bad or (mark == END and not isolations) else mark)
        isolations = max(0, isolations - (mark == END))
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
