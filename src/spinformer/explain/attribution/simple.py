"""The two ends of the scale: scores that know nothing, and one pass for each word."""

import torch
from torch import Tensor

from spinformer.data.words import Words
from spinformer.explain.attribution.base import of_class, text_uniforms
from spinformer.models.masked import MaskedClassifier


class RandomScores:
    """score_i ~ uniform(0, 1), drawn from the seed and the words of the text: the floor of every comparison."""

    name = "random"
    passes = "0"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def seeded(self, seed: int) -> "RandomScores":
        """Others."""
        return RandomScores(seed)

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        scores = torch.zeros(words.mask.shape)
        for row, found in enumerate(words.words):
            scores[row, : len(found)] = text_uniforms(words, row, self.seed, 1, len(found))[0]
        return scores.to(words.mask.device)


class LeaveOneOut:
    """score_i = p_y(N) - p_y(N - i)                                       (occlusion; Li, Monroe and Jurafsky 2016)

    with N all words of the text and y the class decided for on N.
    """

    name = "leave-one-out"
    passes = "W + 1"

    def __init__(self, classifier: MaskedClassifier) -> None:
        self.classifier = classifier

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        batch, most = words.mask.shape
        device = words.mask.device
        full = self.classifier.full(words).to(device)
        target = full.argmax(-1)
        texts, left_out = words.mask.nonzero(as_tuple=True)  # no pass is spent on padding
        coalitions = words.mask[texts].clone()
        coalitions[torch.arange(len(texts), device=device), left_out] = False
        without = self.classifier.of_rows(words, texts, coalitions).to(device)
        drop = of_class(full, target)[texts] - of_class(without, target[texts])
        return torch.zeros(batch, most, device=device).index_put_((texts, left_out), drop)
