"""Which words do bars show, in which order, and do their values add up?

    v(no words) + sum of the shown values + sum of the others + rest = v(all words)

Words come by the size of their values, the largest first. Those that are not shown are one bar together. `rest` is 0
where values share out the probability; estimates may leave a little of it.
"""

from collections import Counter
from dataclasses import dataclass

from spinformer._base import checks
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.render.layout import ADDITIVE, noun, side_names

# Of the probability, or of the score where that is larger: what rounding may leave.
ROUNDING = 0.001


@dataclass(frozen=True)
class Bar:
    """One bar: its text; note: where the word stands, "" where that goes without saying; value, and stderr or None.

    single: whether it is one word, rather than many or what is left.
    """

    text: str
    note: str
    value: float
    stderr: float | None = None
    single: bool = True


def word_bars(record: ExplanationRecord, max_words: int) -> list[Bar]:
    """The words with the largest values, by size; then one bar for all others, where there are more."""
    checks.at_least("max_words", max_words, 1)
    order = sorted(range(len(record.words)), key=lambda position: (-abs(record.words[position].importance), position))
    shown = order if len(order) <= max_words + 1 else order[:max_words]  # a single one needs no bar for "others"
    notes = _notes(record)
    bars = [
        Bar(word.text, notes[position], word.importance, word.importance_stderr)
        for position in shown
        for word in [record.words[position]]
    ]
    others = [record.words[position].importance for position in order[len(shown) :]]
    if others:
        bars.append(Bar(f"{len(others)} other {noun(record)}", "together", sum(others), single=False))
    return bars


def rest_bar(record: ExplanationRecord) -> list[Bar]:
    """What the values of all words leave of the way from no words to all, where it is more than rounding."""
    rest = _rest(record)
    return [] if abs(rest) <= _rounding(record) else [Bar("left out", "by the estimate", rest, single=False)]


def check_adds_up(kind: str, record: ExplanationRecord) -> None:
    """A ValueError unless values lead from the probability of no words to that of all."""
    if not adds_up(record):
        raise ValueError(
            f"{kind!r} needs values that add up to the probability, as those of {', '.join(ADDITIVE)} do; got method "
            f'{record.method!r}, for which there is "bar"'
        )


def adds_up(record: ExplanationRecord) -> bool:
    """Whether the words' values share out what lies between the probability of no words and that of all."""
    if record.base_value is None:
        return False
    return record.method in ADDITIVE or abs(_rest(record)) <= _rounding(record)


def _rest(record: ExplanationRecord) -> float:
    assert record.base_value is not None
    return record.full_value - record.base_value - sum(record.importance)


def _rounding(record: ExplanationRecord) -> float:
    return ROUNDING * max(1.0, abs(record.full_value))


def _notes(record: ExplanationRecord) -> list[str]:
    """Of every word which text it is in, where there are two, and its number, where the text has the word again."""
    names, numbers = side_names(record), [0] * len(record.texts)
    counts = Counter((word.text, word.side) for word in record.words)
    notes = []
    for word in record.words:
        numbers[word.side] += 1
        parts = [names[word.side]] if len(names) > 1 else []
        if counts[word.text, word.side] > 1:
            parts.append(f"no. {numbers[word.side]}")
        notes.append(", ".join(parts))
    return notes
