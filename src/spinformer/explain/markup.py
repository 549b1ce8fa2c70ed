"""Text and numbers for HTML: shown as they are, whatever they hold."""

import html
import unicodedata

from spinformer.explain.explanation import Word
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


def chip(word: Word, part: float, name: str) -> str:
    """A word on the colour of its importance, `part` of the strongest, with its value on hover; name: of its class."""
    colour = shade(part)
    names = " ".join([name, *([colour] if colour else []), *(["against"] if colour.startswith("n") else [])])
    value = f"{signed(word.shapley)} ± {number(word.shapley_stderr)}"
    return f'<span class="{names}" title="{value}">{isolated(word.text)}</span>'


def scroll(name: str, inside: str) -> str:
    """What may be wider than the page, reached by the keyboard too, with a name for those who do not see it."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{inside}</div>'
