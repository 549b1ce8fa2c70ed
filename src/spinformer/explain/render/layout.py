"""What a drawing shows of an explanation: which words, which pairs, on which scale, under which names.

HTML, SVG and matplotlib paint what these functions choose, so that all of them show the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spinformer._base import checks
from spinformer._base.outputs import ON
from spinformer.explain.record import ExplanationRecord, Pair, positions_in
from spinformer.explain.render.scale import Scale, scales_of

# Longer texts are drawn with only those words that are in a drawn pair.
MAX_WORDS_IN_ROWS = 40
# Stands in a row of positions for the words that are left out.
OMITTED = -1
# Methods whose scores share out the probability: with that of no words they sum to that of all.
ADDITIVE = ("shapley", "kernel-shap", "shapley-sampling")
PAIR_NAMES = {"SII": "Shapley interaction", "BII": "Banzhaf interaction"}


@dataclass(frozen=True)
class PairMap:
    """The interactions of the most important words, ready to be painted.

    words: their texts, in the order of the text; values: their interactions, symmetric, 0 on the diagonal; scale: of
    their colours; name: what the interactions are; border: index of the first word of the second text, None where all
    words are of one text; total: number of words that the explanation has; noun: what they are.
    """

    words: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    scale: Scale
    name: str
    border: int | None
    total: int
    noun: str

    @property
    def selection(self) -> str:
        """Which words are shown, where not all are; else nothing."""
        count = len(self.words)
        return f"the {count} most important of {self.total} {self.noun}" if count < self.total else ""


def pair_map(record: ExplanationRecord, max_words: int, scale: Scale | None = None) -> PairMap:
    """The map of the `max_words` most important words of which pairs are known, of all where there are no more.

    scale: None for that of this explanation alone.
    """
    positions = most_important(record, max_words)
    matrix = record.interactions
    values = tuple(tuple(matrix[row][column] for column in positions) for row in positions)
    in_first = sum(record.words[position].side == 0 for position in positions)
    return PairMap(
        words=tuple(record.words[position].text for position in positions),
        values=values,
        scale=scale or scales_of(record).pairs,
        name=pair_name(record),
        border=in_first if 0 < in_first < len(positions) else None,
        total=len(record.words),
        noun=noun(record),
    )


def strongest_pairs(record: ExplanationRecord, max_pairs: int) -> list[Pair]:
    """The pairs with the largest interactions that are not 0, by size."""
    checks.at_least("max_pairs", max_pairs, 1)
    return [pair for pair in record.ranked_pairs()[:max_pairs] if pair.interaction != 0]


def most_important(record: ExplanationRecord, max_words: int) -> list[int]:
    """Positions of the words with the largest scores, in the order of the text; of those that are in a pair, if any."""
    checks.at_least("max_words", max_words, 1)
    scores = record.importance
    paired = positions_in(record.pairs) or range(len(scores))
    ranked = sorted(paired, key=lambda position: (-abs(scores[position]), position))
    return sorted(ranked[:max_words])


def word_rows(record: ExplanationRecord, pairs: Sequence[Pair]) -> list[list[int]]:
    """For each text, the positions of the words to draw.

    Of long texts only the words in `pairs` are drawn; each gap between them is one `OMITTED`.
    """
    linked = positions_in(pairs)
    draw_all = len(record.words) <= MAX_WORDS_IN_ROWS
    rows: list[list[int]] = [[] for _ in record.texts]
    for position, word in enumerate(record.words):
        row = rows[word.side]
        if draw_all or position in linked:
            row.append(position)
        elif not row or row[-1] != OMITTED:
            row.append(OMITTED)
    return rows


def noun(record: ExplanationRecord) -> str:
    """What the players of an explanation are called."""
    return "parts" if record.players == "hierarchical" else record.players


def side_names(record: ExplanationRecord) -> tuple[str, ...]:
    """What the one text, or each of the two, is called."""
    return ("text",) if len(record.texts) == 1 else ("first text", "second text")


def score_name(record: ExplanationRecord) -> str:
    """What the words' scores are: Shapley values, Banzhaf values, fields, attention; else just importance."""
    names = {"shapley": "Shapley value", "banzhaf": "Banzhaf value", "field": "field", "attention": "attention"}
    for field, name in names.items():
        if all(word.importance == getattr(word, field) for word in record.words):
            return name
    return "importance"


def pair_name(record: ExplanationRecord) -> str:
    """What the pairs' numbers are: Shapley or Banzhaf interactions; else just interactions."""
    return PAIR_NAMES.get(record.pair_index or "", "interaction")


def decision(record: ExplanationRecord, show: Callable[[str], str]) -> str:
    """What the classifier decided and how surely; also the explained class, where it is another.

    show: makes the name of a class fit for where it is shown.
    """
    shares = record.probabilities
    named = [record.label]
    if record.outputs == "labels":
        named = sorted((name for name, share in shares.items() if share >= ON), key=lambda name: -shares[name])
    label = ", ".join(f"{show(name)} ({answer(record, name)})" for name in named) or "no label"
    if record.against is not None:
        target = (
            "" if record.target == record.label else f" for {show(record.target)} ({answer(record, record.target)})"
        )
        return f"{label}, explained{target} against {show(record.against)} ({answer(record, record.against)})"
    if record.target == record.label and named:
        return label
    return f"{label}, explained for {show(record.target)} ({answer(record, record.target)})"


def answer(record: ExplanationRecord, name: str) -> str:
    """A probability in percent, or a score."""
    value = record.probabilities[name]
    return f"{value:.3f}".replace("-", "−") if record.outputs == "scores" else f"{value:.1%}"


def subject(record: ExplanationRecord, show: Callable[[str], str]) -> str:
    """What the numbers are of: the probability of a class, or one less another, or a score."""
    kind = "score" if record.outputs == "scores" else "probability"
    target = show(record.target)
    if record.against is not None:
        return f"{kind} of {target} less that of {show(record.against)}"
    return target if kind == record.target else f"{kind} of {target}"


def base_line(record: ExplanationRecord, show: Callable[[str], str]) -> str:
    """The probability of the explained class before any word is read, and with all words; nothing if it is not known.

    Shapley values are added to the first and give the second. Estimates may miss it, and then the line says so. Shown
    numbers add up to the last digit. show: as for `decision`.
    """
    if record.base_value is None:
        return ""
    name, full = subject(record, show), record.full_value
    if record.method not in ADDITIVE:
        return f"{name}: no {noun(record)} {record.base_value:.3f}, all {noun(record)} {full:.3f}"
    total = record.base_value + sum(record.importance)
    met = abs(total - full) < 0.001 * max(1.0, abs(full))
    total = full if met else total
    words = round(total, 3) - round(record.base_value, 3)
    miss = "" if met else f" (estimated; the classifier says {full:.3f})"
    sign, result = "−" if words < 0 else "+", f"{total:.3f}".replace("-", "−")
    kind = noun(record)
    return f"{name}: no {kind} {record.base_value:.3f} {sign} {kind} {abs(words):.3f} = {result}{miss}"


def explained_class(record: ExplanationRecord) -> str:
    """What the words speak for or against."""
    if record.against is not None:
        return f"{record.target} against {record.against}"
    if record.outputs == "scores":
        return f"a high {record.target}"
    if record.outputs == "labels":
        return f"the label {record.target}"
    return "the decision" if record.target == record.label else f"the class {record.target}"


def describe_pairs(record: ExplanationRecord, drawn: Sequence[Pair]) -> str:
    """Which pairs are drawn, in words."""
    total = len(record.pairs)
    if not total and len(record.words) > 1:
        return f"this method scores no pairs of {noun(record)}"
    if not drawn:
        return f"no pair of {noun(record)} interacts"
    which = "every pair" if len(drawn) == total else f"the {len(drawn)} strongest of {total:,} pairs"
    return f"{which} by {pair_name(record)}"
