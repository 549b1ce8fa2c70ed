"""Pieces of HTML that the report and the app's page share. Text is shown as text, whatever it holds."""

import html
import unicodedata

from spinformer.explain.record import ExplanationRecord, Word
from spinformer.explain.render.characters import REPLACEMENT
from spinformer.explain.render.layout import PairMap, largest, side_names
from spinformer.explain.render.style import DEPTHS

# Unicode's isolates: characters that begin one, and the one that ends it.
ISOLATE_STARTS, ISOLATE_END = "\u2066\u2067\u2068", "\u2069"


def escape(text: str) -> str:
    """Text as HTML, with a replacement character for what no document may hold.

    These are control characters other than tab and line feed, unpaired surrogates, and ends of an isolate that `text`
    did not begin: they would end ours.
    """
    safe, depth = [], 0
    for character in text:
        depth += character in ISOLATE_STARTS
        forbidden = unicodedata.category(character) in ("Cc", "Cs") and character not in "\t\n"
        safe.append(REPLACEMENT if forbidden or (character == ISOLATE_END and not depth) else character)
        depth = max(0, depth - (character == ISOLATE_END))
    return html.escape("".join(safe), quote=True)


def isolate(text: str) -> str:
    """Escaped text whose direction marks do not reach the text around it."""
    return f"<bdi>{escape(text)}</bdi>"


def format_signed(value: float | None, digits: int = 3) -> str:
    """With its sign, a true minus; 0 has none. A dash where there is no value."""
    if value is None:
        return "–"
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def format_number(value: float | None, digits: int = 3) -> str:
    """A dash where there is no value."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def shade_class(part: float) -> str:
    """The CSS class of a colour: p1 (faint) to p10 for positive numbers, n1 to n10 for negative ones, none at 0.

    part: the number as a part of the largest, -1 to 1.
    """
    depth = min(DEPTHS, round(DEPTHS * abs(part)))
    return "" if depth == 0 else f"{'p' if part > 0 else 'n'}{depth}"


def word_lines(record: ExplanationRecord) -> str:
    """The words of each text under the text's name, on the colours of their scores."""
    limit = largest(record.importance)
    lines = []
    for side, name in enumerate(side_names(record)):
        words = " ".join(_word_span(word, word.importance / limit) for word in record.words if word.side == side)
        lines.append(f'<p class="side">{name}</p>\n<p class="words">{words}</p>')
    return "\n".join(lines)


def _word_span(word: Word, part: float) -> str:
    """A word on the colour of its score, `part` of the largest, with the number on hover."""
    shade = shade_class(part)
    classes = " ".join(["w", *([shade] if shade else []), *(["against"] if shade.startswith("n") else [])])
    value = f"{format_signed(word.importance)} ± {format_number(word.importance_stderr)}"
    return f'<span class="{classes}" title="{value}">{isolate(word.text)}</span>'


def pair_table(pairs: PairMap) -> str:
    """The map of pairs as a table: a coloured number for every two words."""
    names = [isolate(word) for word in pairs.words]
    positions = range(len(names))

    def cell(row: int, column: int) -> str:
        classes = (shade_class(pairs.scaled(row, column)), "first" if column == pairs.border else "")
        attribute = f' class="{" ".join(filter(None, classes))}"' if any(classes) else ""
        return f"<td{attribute}>{'' if row == column else format_signed(pairs.values[row][column])}</td>"

    left, top = ' class="first"', ' class="top"'
    heads = "".join(
        f'<th scope="col"{left if column == pairs.border else ""}>{names[column]}</th>' for column in positions
    )
    rows = "".join(
        f'<tr{top if row == pairs.border else ""}><th scope="row">{names[row]}</th>'
        f"{''.join(cell(row, column) for column in positions)}</tr>"
        for row in positions
    )
    selection = f"{capitalize(pairs.selection)}. " if pairs.selection else ""
    border = "" if pairs.border is None else "; the line separates the two texts"
    caption = f"<caption>{selection}Blue numbers are synergy, orange ones antagonism{border}.</caption>"
    table = f'<table class="heat">{caption}<thead><tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    return scrollable("map of pairs", table)


def scrollable(name: str, content: str) -> str:
    """What may be wider than the page: scrolled by mouse or keyboard; `name` is read to those who do not see it."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{content}</div>'


def capitalize(text: str) -> str:
    """`text` with a capital first letter."""
    return text[:1].upper() + text[1:]
