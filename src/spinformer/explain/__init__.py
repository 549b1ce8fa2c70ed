"""What a classifier did: which words, and which pairs of words, decided."""

from spinformer.data.words import Words, split
from spinformer.explain.explaining import explain
from spinformer.explain.explanation import Explanation, Pair, Word, coloured
from spinformer.models.masked import ConfidenceGame, MaskedClassifier

__all__ = [
    "ConfidenceGame",
    "Explanation",
    "MaskedClassifier",
    "Pair",
    "Word",
    "Words",
    "coloured",
    "explain",
    "split",
]
