"""Random scores: what every other method is compared with."""

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import METHOD_SUMMARIES
from spinformer.data.words import Words
from spinformer.explain.methods.base import ScorerMethod
from spinformer.explain.scoring import text_uniforms


class RandomScores:
    """score_i ~ uniform(0, 1), drawn from the seed and the words of the text."""

    name = "random"
    passes = "0"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def seeded(self, seed: int) -> "RandomScores":
        """Other scores."""
        return RandomScores(seed)

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        checks.instance("words", words, Words)
        scores = torch.zeros(words.mask.shape)
        for row, text in enumerate(words.words):
            scores[row, : len(text)] = text_uniforms(words, row, self.seed, 1, len(text))[0]
        return scores.to(words.mask.device)


RANDOM = ScorerMethod(
    RandomScores.name,
    METHOD_SUMMARIES[RandomScores.name],
    RandomScores.passes,
    lambda context: RandomScores(context.seed),
)
