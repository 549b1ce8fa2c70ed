"""An explanation as text: a few plain lines for `print`, and coloured words for a terminal."""

import textwrap
from collections.abc import Sequence

from spinformer._base.characters import printable
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.characters import display_width, shorten
from spinformer.explain.render.layout import (
    base_line,
    decision,
    noun,
    pair_name,
    score_name,
    side_names,
    strongest_pairs,
)
from spinformer.explain.render.scale import scales_of

# Backgrounds of the 256-colour palette, pale to deep; both are safe for colour-blind readers.
FOR, AGAINST = (255, 195, 153, 111, 69), (255, 230, 223, 216, 208)
# Longer words are cut in lists.
MAX_LENGTH = 40


def plain_text(record: ExplanationRecord, count: int = 5) -> str:
    """The decision, the `count` most important words and strongest pairs with standard errors, and the method.

    Notes stand before all numbers.
    """
    sides = side_names(record)
    words = [
        (_name(word.text), _value(word.importance, word.importance_stderr), sides[word.side])
        for word in record.top_words(count)
    ]
    pairs = [
        (
            f"{_name(record.words[pair.first].text)} – {_name(record.words[pair.second].text)}",
            _value(pair.interaction, pair.stderr),
            "synergy" if pair.interaction > 0 else "antagonism",
        )
        for pair in strongest_pairs(record, count)
    ]
    lines = _head(record)
    error = "" if all(word.importance_stderr is None for word in record.words) else " ± standard error"
    lines += [f"{noun(record)} by {score_name(record)}{error}:", *_table(words)]
    if pairs:
        lines += [f"pairs of {noun(record)} by {pair_name(record)}:", *_table(pairs)]
    passes = "1 pass" if record.passes == 1 else f"{record.passes:,} passes"
    lines.append(f"method {printable(record.method)}, {passes} of the classifier")
    return "\n".join(lines)


def colored_text(record: ExplanationRecord, width: int = 100, *, color: bool = True) -> str:
    """The texts for a terminal: blue words speak for the explained class, orange ones against it, the deeper the more.

    Without `color` they are marked, [+word] and [-word]. The same number has the same colour in every text; where a
    method has no such scale, a line says so. width: columns, at which lines are broken.
    """
    scale = scales_of(record).words
    title, *facts = _head(record)
    if not scale.fixed:
        facts.append(f"full colour at {scale.limit:.2g} ({scale.remark})")
    lines = [title, *(line for fact in facts for line in textwrap.wrap(fact, width))]
    for side in range(len(record.texts)):
        words = [word for word in record.words if word.side == side]
        lines += _wrap([(word.text, scale.part(word.importance)) for word in words], width, color)
    return "\n".join(lines)


def _head(record: ExplanationRecord) -> list[str]:
    """The decision, the notes, and the probability with no words."""
    base = base_line(record, printable)
    notes = [f"Note: {printable(note)}" for note in record.notes]
    return [decision(record, printable), *notes, *([base] if base else [])]


def _name(text: str) -> str:
    return shorten(printable(text), MAX_LENGTH)


def _value(value: float, stderr: float | None) -> str:
    return f"{value:+.3f}" if stderr is None else f"{value:+.3f} ± {stderr:.3f}"


def _table(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    names, values = (max((display_width(row[column]) for row in rows), default=0) for column in (0, 1))
    return [f"  {_padded(name, names)}  {_padded(value, values)}  {note}" for name, value, note in rows]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def _background(part: float) -> int | None:
    """The colour of a word's score, `part` of the full colour; none where it is faint."""
    depth = min(4, int(5 * abs(part)))
    return None if depth == 0 else (FOR if part > 0 else AGAINST)[depth]


def _wrap(words: Sequence[tuple[str, float]], width: int, color: bool) -> list[str]:
    """Lines of words, each with its part of the full colour."""
    lines, length = [""], 0
    for text, part in words:
        background, shown = _background(part), printable(text)
        if background is not None and not color:
            shown = f"[{'+' if part > 0 else '-'}{shown}]"
        if length and length + 1 + len(shown) > width:
            lines.append("")
            length = 0
        space = " " if length else ""
        length += len(space) + len(shown)
        if background is not None and color:
            shown = f"\x1b[48;5;{background};38;5;16m{shown}\x1b[0m"
        lines[-1] += space + shown
    return [f"  {line}" for line in lines]
