"""Scores of words: the one protocol that every scoring method follows, and the steps that such methods share."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from spinformer._base.rng import uniforms
from spinformer._base.shared_state import evaluation_mode
from spinformer.data.words import Words
from spinformer.games.kernel_shap import distinct_rows
from spinformer.models.masked import MaskedClassifier, stack_coalitions
from spinformer.models.outputs import value_of


class Scorer(Protocol):
    """scorer(words) -> scores (B, W) of the words of B texts

    Scores speak of `target`, (B,), of one class against another where it is (B, 2), or of the class that the classifier
    decides for on the whole text where it is None.
    They are float32, 0 for padding, and depend neither on the batch nor on its padding. name: for tables; passes: what
    a text of W words costs, in forward passes of the classifier.
    """

    @property
    def name(self) -> str:
        """For tables and files."""

    @property
    def passes(self) -> str:
        """What it costs for each text."""

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""


@runtime_checkable
class SeededScorer(Protocol):
    """A scorer that samples: another seed gives other coalitions."""

    seed: int

    def seeded(self, seed: int) -> Scorer:
        """The same scorer with another seed."""


class EvaluationScorer:
    """A scorer whose model is in evaluation mode while it scores, and in its own mode afterwards."""

    def __init__(self, scorer: Scorer, model: nn.Module) -> None:
        self.scorer, self.model = scorer, model

    @property
    def name(self) -> str:
        """The scorer's."""
        return self.scorer.name

    @property
    def passes(self) -> str:
        """The scorer's."""
        return self.scorer.passes

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        with evaluation_mode(self.model):
            return self.scorer(words, target)


class SeededEvaluationScorer(EvaluationScorer):
    """The same of a scorer that samples."""

    def __init__(self, scorer: Scorer, model: nn.Module, seed: int) -> None:
        super().__init__(scorer, model)
        self.seed = seed

    def seeded(self, seed: int) -> Scorer:
        """The same scorer with another seed."""
        assert isinstance(self.scorer, SeededScorer)  # `in_evaluation` checks it
        return in_evaluation(self.scorer.seeded(seed), self.model)


def in_evaluation(scorer: Scorer, model: nn.Module) -> Scorer:
    """`scorer` with its model in evaluation mode during each call."""
    if isinstance(scorer, SeededScorer):
        return SeededEvaluationScorer(scorer, model, scorer.seed)
    return EvaluationScorer(scorer, model)


def in_batches(
    scores: Callable[[Words, Tensor | None], Tensor], words: Words, target: Tensor | None, size: int
) -> Tensor:
    """scores(words, target), computed for at most `size` texts at a time."""
    result = torch.zeros(words.mask.shape, device=words.mask.device)
    for start in range(0, len(result), size):
        stop = start + size
        part = scores(words.rows(start, stop), None if target is None else target[start:stop])
        result[start:stop, : part.shape[1]] = part.to(result)
    return result


def decided(probabilities: Tensor, target: Tensor | None) -> Tensor:
    """`target`, or where it is None the most probable class of each text: (B, classes) -> (B,) or (B, 2)."""
    return probabilities.argmax(-1) if target is None else target.to(probabilities.device)


def text_seed(words: Words, row: int, seed: int) -> Tensor:
    """A 62-bit seed that depends on `seed` and on the words of this text alone."""
    content = json.dumps([seed, words.words[row], words.sides[row]]).encode()
    return torch.tensor(int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 2)


def text_uniforms(words: Words, row: int, seed: int, draws: int, columns: int) -> Tensor:
    """Uniform numbers for this text, (draws, columns), on the CPU; more draws begin with the same numbers."""
    return uniforms(text_seed(words, row, seed), 1, draws, columns, torch.device("cpu"))[0]


def confidences(
    classifier: MaskedClassifier, words: Words, coalitions: Sequence[Tensor], target: Tensor | None = None
) -> list[Tensor]:
    """v(C) = p_y(C) for coalitions of each text, (K, words of it) booleans -> (K,), float64, all on the CPU.

    The first coalition of a text must be all of its words: without a target, y is decided there. Each different
    coalition costs one pass.
    """
    width = words.mask.shape[1]
    distinct, indices = zip(*map(distinct_rows, coalitions), strict=True)
    texts, padded = stack_coalitions(distinct, width)
    answers = classifier.row_probabilities(words, texts, padded).cpu().double().split([len(rows) for rows in distinct])
    values = [part[index] for part, index in zip(answers, indices, strict=True)]
    classes = torch.stack([part[0].argmax() for part in values]) if target is None else target.cpu()
    return [value_of(part, y.expand(len(part), *y.shape)) for part, y in zip(values, classes, strict=True)]
