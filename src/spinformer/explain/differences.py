"""Where do two models weigh words and pairs differently, and where do they decide differently?

    d_t = value of the word in text t to the first model - value to the second,   mean = (1/n) sum of d_t

over the texts that both explain for the same class. The standard error is that of a mean over texts (see `aggregate`):
both models read the same texts, so what differs from text to text cancels in d_t. The parts of the error that are due
to the two games are independent: their squares add up.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from spinformer.explain.aggregate import (
    Key,
    MeanNumbers,
    Normal,
    Occurrences,
    Value,
    clusters_of,
    columns_of,
    mean_numbers,
    pair_values,
    variance_within,
    word_values,
)
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.summary import DifferenceSummary, Disagreement, PairDifference, WordDifference

Both = tuple[ExplanationRecord, ExplanationRecord]


def summarize_differences(
    first: Sequence[ExplanationRecord], second: Sequence[ExplanationRecord], names: tuple[str, str], normal: Normal
) -> DifferenceSummary:
    """All of it; a ValueError where no text is in both."""
    ones, others = (
        {record.texts: (index, record) for index, record in reversed(list(enumerate(part)))} for part in (first, second)
    )
    common = [texts for texts in ones if texts in others]
    if not common:
        raise ValueError("two sets are compared on the same texts; got two that share none")
    named = {_explained(record): record for record in second}
    compared = [(record, named[_explained(record)]) for record in first if _explained(record) in named]
    words, pairs = _means(compared, normal, word_values), _means(compared, normal, pair_values)
    disagreements = [
        Disagreement(ones[texts][0], ones[texts][1], others[texts][1], _gap(ones[texts][1], others[texts][1]))
        for texts in common
        if ones[texts][1].label != others[texts][1].label
    ]
    return DifferenceSummary(
        names=names,
        count=len(common),
        compared=len(compared),
        words=tuple(WordDifference(text=text, side=side, **numbers) for (text, side), numbers in words),
        pairs=tuple(
            PairDifference(first=one[0], first_side=one[1], second=other[0], second_side=other[1], **numbers)
            for (one, other), numbers in pairs
        ),
        disagreements=tuple(sorted(disagreements, key=lambda one: (-one.gap, one.index))),
    )


def _explained(record: ExplanationRecord) -> tuple[tuple[str, ...], str, str | None]:
    return record.texts, record.target, record.against


def _gap(one: ExplanationRecord, other: ExplanationRecord) -> float:
    """How much more probable a decision is to the model that made it, on average; 0 for a class the other lacks."""
    own = one.probabilities[one.label] - other.probabilities.get(one.label, 0.0)
    return (own + other.probabilities[other.label] - one.probabilities.get(other.label, 0.0)) / 2


class DifferenceNumbers(MeanNumbers):
    """The fields of `MeanDifference`."""

    first_mean: float
    second_mean: float


def _means(
    compared: Sequence[Both], normal: Normal, values: Callable[[ExplanationRecord, Normal], Mapping[Key, Value]]
) -> list[tuple[Key, DifferenceNumbers]]:
    """The numbers of every word, or pair, that both explanations of a text have; what surely differs most first."""
    rows = [(values(one, normal), values(other, normal)) for one, other in compared]
    shared = [{key: _difference(mine[key], theirs[key]) for key in mine if key in theirs} for mine, theirs in rows]
    clusters = clusters_of([one for one, _ in compared])
    columns: dict[Key, Occurrences] = columns_of(shared)
    within = variance_within([column.values for column in columns.values()])
    numbers: dict[Key, DifferenceNumbers] = {}
    for key, column in columns.items():
        means = [math.fsum(rows[row][side][key][0] for row in column.rows) / len(column.rows) for side in (0, 1)]
        numbers[key] = {**mean_numbers(column, clusters, within), "first_mean": means[0], "second_mean": means[1]}

    def rank(item: tuple[Key, DifferenceNumbers]) -> tuple[float, float]:
        """The end of the 95% interval that is nearer to 0, then the sum of the differences."""
        found = item[1]
        size = abs(found["mean"])
        return -max(0.0, size - found["reach"]) * (found["clusters"] > 1), -size * found["count"]

    return sorted(numbers.items(), key=rank)


def _difference(one: Value, other: Value) -> Value:
    misfit = None if one[1] is None or other[1] is None else math.hypot(one[1], other[1])
    return one[0] - other[0], misfit
