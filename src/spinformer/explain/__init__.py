"""What a classifier did: which words, and which pairs of words, decided."""

from spinformer.data.words import Words, split
from spinformer.models.masked import ConfidenceGame, MaskedClassifier

__all__ = ["ConfidenceGame", "MaskedClassifier", "Words", "split"]
