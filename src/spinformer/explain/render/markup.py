"""Pieces of HTML that the report and the app's page share. Text is shown as text, whatever it holds."""

import html
import unicodedata
from collections.abc import Sequence

from spinformer._base.characters import REPLACEMENT
from spinformer.explain.record import ExplanationRecord, Pair, Word
from spinformer.explain.render.characters import capitalize, shorten
from spinformer.explain.render.columns import sampling_error
from spinformer.explain.render.layout import PairMap, base_line, describe_pairs, score_name, side_names
from spinformer.explain.render.scale import Scale
from spinformer.explain.render.style import DEPTHS

# Unicode's isolates: characters that begin one, and the one that ends it.
ISOLATE_STARTS, ISOLATE_END = "\u2066\u2067\u2068", "\u2069"
# Characters that are shown of what the model did not read.
MAX_UNREAD = 300


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


def error_parts(stderr: float | None, misfit: float | None) -> str:
    """What a standard error is made of, for a tooltip; nothing where the game's part is not known."""
    if stderr is None or misfit is None:
        return ""
    return f"game ± {misfit:.4f}, sampling ± {sampling_error(stderr, misfit):.4f}"


def shade_class(part: float) -> str:
    """The CSS class of a colour: p1 (faint) to p10 for positive parts, n1 to n10 for negative ones, none at 0.

    part: of the full colour, -1 to 1.
    """
    depth = min(DEPTHS, round(DEPTHS * abs(part)))
    return "" if depth == 0 else f"{'p' if part > 0 else 'n'}{depth}"


def note_box(record: ExplanationRecord) -> str:
    """What a reader must know first, where there is such a thing."""
    notes = "".join(f"<p><strong>Note:</strong> {isolate(note)}</p>" for note in record.notes)
    return f'<div class="note" role="note">{notes}</div>' if notes else ""


def base_paragraph(record: ExplanationRecord) -> str:
    """The probability with no words, and what the words add to it; nothing where it is not known."""
    line = base_line(record, isolate)
    return f'<p class="base">{capitalize(line)}</p>' if line else ""


def word_lines(record: ExplanationRecord, scale: Scale) -> str:
    """The words of each text under the text's name, on the colours of their scores, and the scale below."""
    return f"{colored_words(record, scale)}\n{scale_line(scale, score_name(record))}"


def colored_words(record: ExplanationRecord, scale: Scale) -> str:
    """The same without the scale, for pages that show it once."""
    lines = []
    for side, name in enumerate(side_names(record)):
        words = " ".join(_word(word, scale) for word in record.words if word.side == side)
        if record.unread and record.unread[side]:
            words += (
                f' <span class="unread" title="not read">{isolate(shorten(record.unread[side], MAX_UNREAD))}</span>'
            )
        lines.append(f'<p class="side">{name}</p>\n<p class="words">{words}</p>')
    return "\n".join(lines)


def scale_line(scale: Scale, name: str) -> str:
    """The colours with their numbers, and whether other texts have the same. name: what the numbers are."""
    marks = " ".join(f'<span class="{_classes(scale.part(mark))}">{scale.label(mark)}</span>' for mark in scale.marks)
    return f'<p class="scale">{capitalize(name)}: {marks} ({scale.remark})</p>'


def arcs_caption(record: ExplanationRecord, drawn: Sequence[Pair], scale: Scale) -> str:
    """Which pairs the arcs are, and what their look says."""
    widest = f"{scale.limit:.2g}{' or more' if scale.is_open else ''} ({scale.remark})"
    looks = f"solid arcs for synergy, dashed for antagonism, the widest for {widest}"
    return f"{capitalize(describe_pairs(record, drawn))}{f': {looks}' if drawn else ''}."


def _classes(part: float) -> str:
    """CSS classes of a word or a mark on its colour."""
    shade = shade_class(part)
    return " ".join(["w", *([shade] if shade else []), *(["against"] if shade.startswith("n") else [])])


def _word(word: Word, scale: Scale) -> str:
    """A word on the colour of its score; on hover, the number with its standard error and what that is made of."""
    error = "" if word.importance_stderr is None else f" ± {format_number(word.importance_stderr)}"
    parts = error_parts(word.importance_stderr, word.misfit_stderr)
    title = f"{format_signed(word.importance)}{error}{f' ({parts})' if parts else ''}"
    return f'<span class="{_classes(scale.part(word.importance))}" title="{title}">{isolate(word.text)}</span>'


def pair_table(pairs: PairMap) -> str:
    """The map of pairs as a table, a coloured number for every two words, under its scale."""
    names = [isolate(word) for word in pairs.words]
    positions = range(len(names))

    def cell(row: int, column: int) -> str:
        classes = (shade_class(pairs.scale.part(pairs.values[row][column])), "first" if column == pairs.border else "")
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
    return scrollable("map of pairs", f"{scale_line(pairs.scale, pairs.name)}\n{table}")


def scrollable(name: str, content: str) -> str:
    """What may be wider than the page: scrolled by mouse or keyboard; `name` is read to those who do not see it."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{content}</div>'
