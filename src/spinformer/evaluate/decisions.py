"""What a classifier decided, and how sure it is of that decision when it sees parts of the texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spinformer import checks
from spinformer.data.words import Words
from spinformer.games.draws import members, uniform_sizes
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.rng import uniforms


@dataclass(frozen=True)
class Decisions:
    """y = argmax over c of p_c(N),   confidence = p_y(N)

    of B texts, N being all words of a text: what explanations explain and are measured against. target: y, (B,);
    confidence: (B,); rows: the texts' numbers in the set they come from, by which highlights are looked up and random
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
        found = self.classifier.probabilities(self.words, coalitions).double().cpu()
        return found.gather(2, self.target[:, None, None].expand(-1, found.shape[1], 1)).squeeze(2)

    @cached_property
    def drops(self) -> Tensor:
        """p_y(N) - p_y(N - i), (B, W): by how much the confidence falls without word i; 0 for padding."""
        alone = torch.eye(self.mask.shape[1], dtype=torch.bool)
        found = self.confidence[:, None] - self.values(self.mask[:, None] & ~alone)
        return found * self.mask

    def game(self, row: int) -> ConfidenceGame:
        """v(C) = p_y(C) of the text at this place of the batch alone, without the padding of the others."""
        return ConfidenceGame(self.classifier, _one(self.words, row), self.target[row : row + 1])

    def check(self, name: str, scores: Tensor) -> Tensor:
        """Scores (B, W), finite for every word, as they came but for float64 on the CPU and 0 for padding."""
        checks.floating(name, scores, (2,))
        checks.shape(name, scores, self.mask.shape)
        found = scores.detach().double().cpu().masked_fill(~self.mask, 0.0)
        checks.finite(name, found)
        return found


def decide(classifier: MaskedClassifier, words: Words, rows: Sequence[int] | None = None) -> Decisions:
    """What `classifier` decides on `words`; one forward pass a text. rows: their numbers, from 0 where not given."""
    count = len(words.words)
    numbers = tuple(range(count)) if rows is None else tuple(rows)
    if len(numbers) != count:
        raise ValueError(f"rows must be {count} numbers, one for each text; got {len(numbers)}")
    confidence, target = classifier.full(words).double().cpu().max(1)
    return Decisions(classifier, words, target, confidence, numbers)


def random_coalitions(decisions: Decisions, budget: int, seed: int) -> Tensor:
    """P(C) = 1 / ((W + 1) binom(W, |C|)): sizes uniform from 0 to W, members uniform among coalitions of a size.

    (B, budget, W) booleans. A text's coalitions depend on the seed and on its row, not on the batch it stands in.
    """
    checks.at_least("budget", budget, 1)
    checks.at_least("seed", seed, 0)
    if seed >= 2**30:
        raise ValueError(f"seed must be below 2**30; got {seed}")
    most, cpu = decisions.mask.shape[1], torch.device("cpu")
    seeds = [torch.tensor((seed << 32) + row) for row in decisions.rows]
    drawn = torch.cat([uniforms(own, 1, budget, most + 1, cpu) for own in seeds])
    sizes = uniform_sizes(drawn[..., 0], decisions.words.counts.cpu())
    return members(drawn[..., 1:], sizes, decisions.mask)


def _one(words: Words, row: int) -> Words:
    """One text of a batch."""
    part = slice(row, row + 1)
    inputs = {name: value[part] for name, value in words.inputs.items()}
    return Words(inputs, words.owner[part], words.counts[part], words.words[part], words.sides[part])
