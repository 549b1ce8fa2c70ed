"""Means over texts, with standard errors that are right for them.

    m   = (1/n) sum over t of x_t
    se² = G / (G - 1) · (1/n²) · sum over clusters c of (sum over t in c of (x_t - m))²

The texts are a sample of those that the classifier will see, and m is an estimate of the mean over all of these: what
differs from text to text is in se, and so is what was sampled in each text. G is the number of clusters. Explanations
of the same text for several classes, and pairs that share their first text, are not independent: they are one cluster.
With a cluster for each text, se is s / sqrt(n).

Of many words that few texts have, some have nearly the same value in all of them, by chance. So half of a 95% interval

    reach = t sqrt( (PRIOR s² / G + (G - 1) se²) / (PRIOR + G - 1) )

draws the error of each word towards what words vary by (s², the variance within words, over all words), as if PRIOR
more texts had said so; t is Student's, of PRIOR + G - 1 degrees of freedom.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar

from spinformer.explain.record import DEVIATIONS, ExplanationRecord
from spinformer.explain.summary import PairSummary, WordSummary

PRIOR = 4
# Student's t: standard errors on either side that make a 95% interval, with 1, 2, ... degrees of freedom. With more of
# them it is DEVIATIONS + BEYOND / degrees, to 0.01.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
BEYOND = 2.65
# A word: its text as it is counted, and its side. A pair: two words in order.
WordKey = tuple[str, int]
PairKey = tuple[WordKey, WordKey]
Key = TypeVar("Key", WordKey, PairKey)
Normal = Callable[[str], str]
# The value of a word or pair in one text, and its misfit or None.
Value = tuple[float, float | None]


@dataclass
class Occurrences:
    """The values of one word or pair: in which explanations, how large, and how far the game may be off."""

    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    misfit: list[float | None] = field(default_factory=list)

    def mean_misfit(self) -> float | None:
        """The mean of the misfits, None where one is not known."""
        known = [error for error in self.misfit if error is not None]
        return sum(known) / len(known) if known and len(known) == len(self.misfit) else None


def word_values(record: ExplanationRecord, normal: Normal) -> dict[WordKey, Value]:
    """The value of every word of a text; values of the same word are added, and so are their misfits."""
    return _added(((normal(word.text), word.side), word.importance, word.misfit_stderr) for word in record.words)


def pair_values(record: ExplanationRecord, normal: Normal) -> dict[PairKey, Value]:
    """The interaction of every two words of a text that it holds, added as those of words are."""
    keys = [(normal(word.text), word.side) for word in record.words]
    return _added(
        (_in_order(keys[pair.first], keys[pair.second]), pair.interaction, pair.misfit_stderr) for pair in record.pairs
    )


def _in_order(one: WordKey, other: WordKey) -> PairKey:
    return (one, other) if (one[1], one[0]) <= (other[1], other[0]) else (other, one)


def _added(parts: Iterable[tuple[Key, float, float | None]]) -> dict[Key, Value]:
    sums: dict[Key, Value] = {}
    for key, value, misfit in parts:
        before, error = sums.get(key, (0.0, 0.0))
        sums[key] = before + value, None if misfit is None or error is None else error + misfit
    return sums


def columns_of(rows: Iterable[Mapping[Key, Value]]) -> dict[Key, Occurrences]:
    """From the values of each text to those of each word or pair."""
    columns: dict[Key, Occurrences] = {}
    for row, values in enumerate(rows):
        for key, (value, misfit) in values.items():
            column = columns.setdefault(key, Occurrences())
            column.rows.append(row)
            column.values.append(value)
            column.misfit.append(misfit)
    return columns


def clusters_of(records: Sequence[ExplanationRecord]) -> list[str]:
    """What explanations have in common that are not independent: their first text."""
    return [record.texts[0] for record in records]


def mean_and_stderr(values: Sequence[float], clusters: Sequence[object]) -> tuple[float, float | None]:
    """m and se; None for se where there are fewer than two clusters."""
    count = len(values)
    mean = math.fsum(values) / count
    sums: dict[object, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - mean
    groups = len(sums)
    if groups < 2:
        return mean, None
    spread = math.fsum(part * part for part in sums.values()) * groups / (groups - 1)
    return mean, math.sqrt(spread) / count


class MeanNumbers(TypedDict):
    """The fields of `MeanOverTexts`."""

    count: int
    clusters: int
    mean: float
    stderr: float | None
    reach: float
    misfit_stderr: float | None


class ImportanceNumbers(MeanNumbers):
    """The fields of `Importance`."""

    mean_abs: float
    mean_abs_stderr: float | None
    mean_abs_reach: float
    share: float


def summarize_words(records: Sequence[ExplanationRecord], normal: Normal) -> list[WordSummary]:
    """All words, those that surely matter most first."""
    columns = columns_of(word_values(record, normal) for record in records)
    numbers = _importance(columns, clusters_of(records))
    return _ranked(WordSummary(text=text, side=side, **numbers[text, side]) for text, side in columns)


def summarize_pairs(records: Sequence[ExplanationRecord], normal: Normal) -> list[PairSummary]:
    """All pairs, those that surely matter most first."""
    columns = columns_of(pair_values(record, normal) for record in records)
    numbers = _importance(columns, clusters_of(records))
    return _ranked(
        PairSummary(first=one[0], first_side=one[1], second=other[0], second_side=other[1], **numbers[one, other])
        for one, other in columns
    )


def mean_numbers(column: Occurrences, clusters: Sequence[str], within: float) -> MeanNumbers:
    """The mean of one column; clusters: of every explanation; within: s²."""
    own = [clusters[row] for row in column.rows]
    mean, stderr = mean_and_stderr(column.values, own)
    groups = len(set(own))
    return {
        "count": len(own),
        "clusters": groups,
        "mean": mean,
        "stderr": stderr,
        "reach": interval_reach(stderr, groups, within),
        "misfit_stderr": column.mean_misfit(),
    }


def _importance(columns: Mapping[Key, Occurrences], clusters: Sequence[str]) -> dict[Key, ImportanceNumbers]:
    within = variance_within([column.values for column in columns.values()])
    sizes = {key: [abs(value) for value in column.values] for key, column in columns.items()}
    sizes_within = variance_within(list(sizes.values()))
    total = math.fsum(value for values in sizes.values() for value in values) or 1.0
    numbers: dict[Key, ImportanceNumbers] = {}
    for key, column in columns.items():
        mean = mean_numbers(column, clusters, within)
        mean_abs, error = mean_and_stderr(sizes[key], [clusters[row] for row in column.rows])
        numbers[key] = {
            **mean,
            "mean_abs": mean_abs,
            "mean_abs_stderr": error,
            "mean_abs_reach": interval_reach(error, mean["clusters"], sizes_within),
            "share": math.fsum(sizes[key]) / total,
        }
    return numbers


def variance_within(columns: Sequence[Sequence[float]]) -> float:
    """The variance within columns, over all of them; 0 where each has one value."""
    squares = 0.0
    for values in columns:
        mean = math.fsum(values) / len(values)
        squares += math.fsum((value - mean) ** 2 for value in values)
    return squares / max(1, sum(len(values) - 1 for values in columns))


def interval_reach(stderr: float | None, clusters: int, within: float) -> float:
    """`reach` of a mean with this standard error; within: s²."""
    degrees = PRIOR + clusters - 1
    own = 0.0 if stderr is None else (clusters - 1) * stderr**2
    return deviations(degrees) * math.sqrt((PRIOR * within / clusters + own) / degrees)


def deviations(degrees: int) -> float:
    """Standard errors on either side of a mean that make its 95% interval."""
    return STUDENT[degrees - 1] if degrees <= len(STUDENT) else DEVIATIONS + BEYOND / degrees


Summary = TypeVar("Summary", WordSummary, PairSummary)


def _ranked(summaries: Iterable[Summary]) -> list[Summary]:
    return sorted(summaries, key=lambda one: (-one.lower, -one.share))
