"""Which words and pairs of many texts are shown: those that surely matter most, then those with the largest share."""

from spinformer.explain.summary import GroupSummary, MeanOverTexts, PairSummary, WordSummary

# A standard error of fewer independent texts is luck, and is not written.
MIN_CLUSTERS = 3


def shown_words(group: GroupSummary, count: int) -> list[WordSummary]:
    """The first `count` words, the largest mean first: from those that speak for the class to those against it."""
    return sorted(group.words[:count], key=lambda word: -word.mean)


def shown_pairs(group: GroupSummary, count: int) -> list[PairSummary]:
    """The same of pairs, from synergy to antagonism."""
    return sorted(group.pairs[:count], key=lambda pair: -pair.mean)


def shown_stderr(mean: MeanOverTexts, stderr: float | None) -> float | None:
    """A standard error that tells something, else None."""
    return stderr if mean.clusters >= MIN_CLUSTERS else None
