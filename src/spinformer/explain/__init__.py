"""What a classifier did: which words, and which pairs of words, decided."""

from spinformer.explain.masked import ConfidenceGame, MaskedClassifier
from spinformer.explain.words import Words, split

__all__ = ["ConfidenceGame", "MaskedClassifier", "Words", "split"]
