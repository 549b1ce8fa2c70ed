"""Which texts have other reasons than the usual ones of their class?

The value of word w in text t of a class is taken to be that of the word in this class, and what the text makes of it:

    x_tw = mu_w + e_tw,   mu_w of variance tau² around mu, e_tw of variance s²

mu is the mean of all values of the class; s² and tau² follow from the variance within words and between them (one-way
analysis of variance). With n other texts of the class that have the word, and xbar their mean, its usual value is

    usual_w = mu + (xbar - mu) n tau² / (n tau² + s²),   known up to   V_w = s² + tau² s² / (n tau² + s²)

so a word that few other texts have is expected to do what words of the class do, and counts less. The distance is

    d_t = sqrt( mean over the words w of t of (x_tw - usual_w)² / V_w )

It is about 1 for texts that the class's own words explain. A large one says that words do here what they seldom do in
this class. It is a reason to look at the text, not a test: values of words have longer tails than normal ones.
"""

import math
from collections.abc import Sequence

from spinformer.explain.aggregate import Normal, Occurrences, WordKey, columns_of, word_values
from spinformer.explain.record import ExplanationRecord
from spinformer.explain.summary import Deviation, UnusualText

# A class with fewer texts has nothing usual.
MIN_TEXTS = 3


def unusual_texts(indices: Sequence[int], records: Sequence[ExplanationRecord], normal: Normal) -> list[UnusualText]:
    """Every text of one class with its distance, the largest first; none where the class has fewer than MIN_TEXTS.

    indices: the position of each record in the set.
    """
    if len(records) < MIN_TEXTS:
        return []
    rows = [word_values(record, normal) for record in records]
    columns = columns_of(rows)
    middle, within, between = variances(list(columns.values()))
    sums = {key: math.fsum(column.values) for key, column in columns.items()}
    texts = []
    for index, record, row in zip(indices, records, rows, strict=True):
        found: list[tuple[float, Deviation]] = []
        for (text, side), (value, _) in row.items():
            key: WordKey = (text, side)
            others = len(columns[key].values) - 1
            pooled = others * between + within
            weight = others * between / pooled if pooled else 0.0
            xbar = (sums[key] - value) / others if others else middle
            usual = middle + (xbar - middle) * weight
            variance = within + (between * within / pooled if pooled else 0.0)
            squared = (value - usual) ** 2 / variance if variance > 0 else 0.0
            found.append((squared, Deviation(text, side, value, usual, others)))
        distance = math.sqrt(math.fsum(squared for squared, _ in found) / len(found))
        found.sort(key=lambda one: -one[0])
        texts.append(UnusualText(index, record, distance, tuple(deviation for _, deviation in found)))
    return sorted(texts, key=lambda one: (-one.distance, one.index))


def variances(columns: Sequence[Occurrences]) -> tuple[float, float, float]:
    """mu, s² and tau² of the values of each word.

    Where no word is in two texts, the variance is all taken to be s².
    """
    values = [value for column in columns for value in column.values]
    count, groups = len(values), len(columns)
    middle = math.fsum(values) / count
    means = [math.fsum(column.values) / len(column.values) for column in columns]
    within = math.fsum(
        (value - mean) ** 2 for column, mean in zip(columns, means, strict=True) for value in column.values
    )
    between = math.fsum(len(column.values) * (mean - middle) ** 2 for column, mean in zip(columns, means, strict=True))
    if count == groups:
        return middle, between / max(1, count - 1), 0.0
    inner = within / (count - groups)
    if groups == 1:
        return middle, inner, 0.0
    size = (count - math.fsum(len(column.values) ** 2 for column in columns) / count) / (groups - 1)
    return middle, inner, max(0.0, (between / (groups - 1) - inner) / size)
