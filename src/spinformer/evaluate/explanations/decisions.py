"""What a classifier decided, and how sure it is of that decision when it sees parts of the texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.rng import uniforms
from spinformer.data.words import Words
from spinformer.games.coalitions import members, uniform_sizes
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.models.outputs import value_of


@dataclass(frozen=True)
class Decisions:
    """y = argmax over c of p_c(N),   confidence = p_y(N)

    of B texts, N being all words of a text: what explanations explain and are measured against. target: y, (B,);
    confidence: (B,); rows: the numbers of the texts in their data set, by which highlights are looked up and random
    coalitions drawn. Numbers are float64 on the CPU. `decide` makes one.
    """

    classifier: MaskedClassifier
    words: Words
    target: Tensor
    confidence: Tensor
    rows: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def mask(self) -> Tensor:
        """(B, W), false for padding."""
        return self.words.mask.cpu()

    def values(self, coalitions: Tensor) -> Tensor:
        """p_y(C), (B, K), of coalitions of words, (B, K, W); one forward pass each."""
        probabilities = self.classifier.probabilities(self.words, coalitions).double().cpu()  # (B, K, classes)
        return value_of(probabilities, self.target)

    @cached_property
    def drops(self) -> Tensor:
        """p_y(N) - p_y(N - i), (B, W): by how much the confidence falls without word i; 0 for padding."""
        single = torch.eye(self.mask.shape[1], dtype=torch.bool)
        return (self.confidence[:, None] - self.values(self.mask[:, None] & ~single)) * self.mask

    @cached_property
    def apart(self) -> "list[Decisions]":
        """Each text alone, without the words' padding that the others bring."""
        return [
            Decisions(
                self.classifier,
                self.words.rows(row, row + 1),
                self.target[row : row + 1],
                self.confidence[row : row + 1],
                (number,),
            )
            for row, number in enumerate(self.rows)
        ]

    def game(self, row: int) -> ConfidenceGame:
        """v(C) = p_y(C) of one text of the batch, without the padding that the others bring."""
        return ConfidenceGame(self.classifier, self.words.rows(row, row + 1), self.target[row : row + 1])

    def check(self, name: str, scores: Tensor) -> Tensor:
        """Scores (B, W), which must be finite for every word, as float64 on the CPU with 0 for padding."""
        checks.floating(name, scores, (2,))
        checks.shape(name, scores, self.mask.shape)
        checked = scores.detach().double().cpu().masked_fill(~self.mask, 0.0)
        checks.finite(name, checked)
        return checked


def decide(classifier: MaskedClassifier, words: Words, rows: Sequence[int] | None = None) -> Decisions:
    """What `classifier` decides on `words`; one forward pass for each text. rows: see `Decisions`; default 0, 1, ..."""
    checks.instance("classifier", classifier, MaskedClassifier)
    checks.instance("words", words, Words)
    count = len(words.words)
    if rows is not None:
        checks.items("rows", rows, int)
    numbers = tuple(range(count)) if rows is None else tuple(rows)
    if len(numbers) != count:
        raise ValueError(f"rows must be {count} numbers, one for each text; got {len(numbers)}")
    confidence, target = classifier.full_probabilities(words).double().cpu().max(1)
    return Decisions(classifier, words, target, confidence, numbers)


def random_coalitions(decisions: Decisions, budget: int, seed: int) -> Tensor:
    """P(C) = 1 / ((W + 1) binom(W, |C|)): sizes uniform from 0 to W, members uniform among coalitions of a size.

    (B, budget, W) booleans. A text's coalitions depend on the seed and on its row, not on the rest of the batch.
    """
    checks.at_least("budget", budget, 1)
    checks.at_least("seed", seed, 0)
    if seed >= 2**30:
        raise ValueError(f"seed must be below 2**30; got {seed}")
    width, cpu = decisions.mask.shape[1], torch.device("cpu")
    seeds = [torch.tensor((seed << 32) + row) for row in decisions.rows]
    numbers = torch.cat([uniforms(text_seed, 1, budget, width + 1, cpu) for text_seed in seeds])  # (B, budget, W + 1)
    sizes = uniform_sizes(numbers[..., 0], decisions.words.counts.cpu())
    return members(numbers[..., 1:], sizes, decisions.mask)
