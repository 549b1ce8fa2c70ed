"""What of an explanation is shown where not all of it can be: the strongest pairs, the most important words, rows."""

from collections.abc import Sequence

from spinformer import checks
from spinformer.explain.explanation import Explanation, Pair

# Texts with more words than this are shown with those words alone that are in a pair.
FEW = 40


def strongest_pairs(explanation: Explanation, most: int) -> list[Pair]:
    """The pairs with the largest interactions that are not 0, by size."""
    checks.at_least("most", most, 1)
    ranked = sorted(explanation.pairs, key=lambda pair: -abs(pair.interaction))
    return [pair for pair in ranked[:most] if pair.interaction != 0]


def most_important(explanation: Explanation, most: int) -> list[int]:
    """Places of the words with the largest Shapley values, in the order of the text."""
    checks.at_least("most", most, 1)
    words = explanation.words
    ranked = sorted(range(len(words)), key=lambda place: (-abs(words[place].shapley), place))
    return sorted(ranked[:most])


def rows(explanation: Explanation, pairs: Sequence[Pair]) -> list[list[int]]:
    """Of each text the places of its words; where there are many, of those in `pairs`, with one -1 for each gap."""
    linked = {place for pair in pairs for place in (pair.first, pair.second)}
    every = len(explanation.words) <= FEW
    found: list[list[int]] = [[] for _ in explanation.texts]
    for place, word in enumerate(explanation.words):
        row = found[word.side]
        if every or place in linked:
            row.append(place)
        elif not row or row[-1] != -1:
            row.append(-1)
    return found


def side_names(explanation: Explanation) -> tuple[str, ...]:
    """Of the one text, or of the two."""
    return ("text",) if len(explanation.texts) == 1 else ("premise", "hypothesis")


def said_of_pairs(explanation: Explanation, shown: Sequence[Pair]) -> str:
    """Which pairs are shown, in words."""
    if not shown:
        return "no pair of words interacts"
    every = len(explanation.pairs)
    return "every pair" if len(shown) == every else f"the {len(shown)} strongest of {every:,} pairs"
