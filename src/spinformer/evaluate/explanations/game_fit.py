"""How well a predicted game agrees with the classifier: its values v(C), and its interactions of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.evaluate.explanations.correlation import KINDS, Kind, correlation, r_squared
from spinformer.evaluate.explanations.decisions import Decisions, random_coalitions
from spinformer.evaluate.explanations.metric import Quantity, Summary, finite_or_none
from spinformer.games.exact import exact_values
from spinformer.games.game import Game

MAX_WORDS = 12


@dataclass(frozen=True)
class Fit:
    """R² = 1 - sum (real - predicted)² / sum (real - mean real)²

    predicted, real: (B, K), v(C) and p_y(C) of the same coalitions. pooled: over all of them, about their common mean;
    within: over all of them, about the mean of each text, so that knowing which texts are easy earns nothing; per_text:
    (B,), each text alone, NaN where p_y never changes.
    """

    predicted: Tensor
    real: Tensor

    @property
    def pooled(self) -> float:
        """About the mean of all."""
        return r_squared(self.predicted, self.real, self.real.mean())

    @property
    def within(self) -> float:
        """About the mean of each text."""
        return r_squared(self.predicted, self.real, self.real.mean(1, keepdim=True))

    @property
    def per_text(self) -> Tensor:
        """Each text about its own mean."""
        rows = zip(self.predicted, self.real, strict=True)
        return torch.tensor([r_squared(row, real, real.mean()) for row, real in rows], dtype=torch.float64)

    @classmethod
    def join(cls, parts: Sequence["Fit"]) -> "Fit":
        """Of several batches, as if they had been one."""
        if not parts:
            raise ValueError("expected at least one fit to join; got none")
        return cls(torch.cat([part.predicted for part in parts]), torch.cat([part.real for part in parts]))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        texts, coalitions = self.real.shape
        numbers = {"pooled": finite_or_none(self.pooled), "within": finite_or_none(self.within)}
        return {**numbers, "texts": texts, "coalitions": coalitions}


class GameFit(Quantity):
    """R² of v(C) against p_y(C) over random coalitions C, |C| uniform from 0 to W (see `Fit`)

    budget: coalitions of each text, one forward pass each; seed: of the coalitions, which also depend on a text's row.
    """

    name, better, bounds = "game_fit", "higher", (-torch.inf, 1.0)

    def __init__(self, budget: int = 64, seed: int = 0) -> None:
        checks.at_least("budget", budget, 2)
        checks.at_least("seed", seed, 0)
        self.budget, self.seed = budget, seed

    def __call__(self, decisions: Decisions, game: Game) -> Fit:
        """game: one for each text, over the same words."""
        _same_words(decisions, game)
        coalitions = random_coalitions(decisions, self.budget, self.seed)
        with torch.no_grad():
            values = game(coalitions.to(game.device)).double().cpu()
        predicted = values if game.batched else values[None]
        checks.finite("the game's values", predicted)
        return Fit(predicted, decisions.values(coalitions))


@dataclass(frozen=True)
class Agreement:
    """corr over pairs i < j of predicted_ij and real_ij

    predicted, real: for each text, its pairs' interactions, in one order. `pooled` takes the pairs of all texts
    together; `per_text` each text alone, NaN for fewer than 3 words and where one side is the same throughout.
    """

    predicted: tuple[Tensor, ...]
    real: tuple[Tensor, ...]

    def pooled(self, kind: Kind) -> float:
        """Over the pairs of all texts."""
        return correlation(torch.cat(self.predicted), torch.cat(self.real), kind)

    def per_text(self, kind: Kind) -> Tensor:
        """(B,), over the pairs of each text."""
        rows = zip(self.predicted, self.real, strict=True)
        return torch.tensor([correlation(row, real, kind) for row, real in rows], dtype=torch.float64)

    @classmethod
    def join(cls, parts: Sequence["Agreement"]) -> "Agreement":
        """Of several batches, as if they had been one."""
        return cls(
            tuple(one for part in parts for one in part.predicted), tuple(one for part in parts for one in part.real)
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: pooled, and mean over texts with its standard error."""
        record: dict[str, Any] = {"texts": len(self.real), "pairs": sum(map(len, self.real))}
        for kind in KINDS:
            record[kind] = {"pooled": finite_or_none(self.pooled(kind)), **Summary.of(self.per_text(kind)).to_dict()}
        return record


class InteractionAgreement(Quantity):
    """corr over pairs i < j of predicted_ij and the Banzhaf interaction of p_y (see `Agreement`)

    The real interactions are exact and cost 2^W forward passes for a text, so texts of more than 12 words are refused.
    They do not depend on the prediction: `real` computes them once for several predictions.
    """

    name, better, bounds = "interaction_agreement", "higher", (-1.0, 1.0)

    def real(self, decisions: Decisions) -> Tensor:
        """(B, W, W), symmetric, 0 on the diagonal and for padding."""
        checks.instance("decisions", decisions, Decisions)
        counts = decisions.words.counts.tolist()
        for number, count in zip(decisions.rows, counts, strict=True):
            if count > MAX_WORDS:
                raise ValueError(f"exact interactions take at most {MAX_WORDS} words a text; row {number} has {count}")
        interactions = torch.zeros(len(counts), max(counts), max(counts), dtype=torch.float64)
        for row, count in enumerate(counts):
            if count > 1:
                interactions[row, :count, :count] = exact_values(decisions.game(row), "BII")[0].double().cpu()
        return interactions

    def __call__(self, decisions: Decisions, predicted: Game | Tensor, real: Tensor | None = None) -> Agreement:
        """predicted: a game over the same words, whose exact Banzhaf interactions are taken, or interactions (B, W, W).

        A matrix that is not symmetric stands for the mean of its two halves. real: see `real`; default: computed here.
        """
        expected = self.real(decisions) if real is None else real
        if isinstance(predicted, Game):
            _same_words(decisions, predicted)
            with torch.no_grad():
                matrices = exact_values(predicted, "BII")
            matrices = matrices if predicted.batched else matrices[None]
        else:
            matrices = predicted
        width = decisions.mask.shape[1]
        parts = []
        for name, matrix in (("predicted", matrices), ("real", expected)):
            checks.shape(name, matrix, (len(decisions), width, width))
            symmetric = (matrix + matrix.mT).detach().double().cpu() / 2
            parts.append(_pairs(name, symmetric, decisions.words.counts.tolist()))
        return Agreement(*parts)


def _pairs(name: str, matrices: Tensor, counts: Sequence[int]) -> tuple[Tensor, ...]:
    """The entries above the diagonal, for each text."""
    pairs = []
    for matrix, count in zip(matrices, counts, strict=True):
        first, second = torch.triu_indices(count, count, 1)
        pairs.append(matrix[first, second])
    checks.finite(name, torch.cat(pairs))
    return tuple(pairs)


def _same_words(decisions: Decisions, game: Game) -> None:
    checks.instance("decisions", decisions, Decisions)
    checks.instance("game", game, Game)
    if (game.batch, game.players) != tuple(decisions.mask.shape):
        texts, words = decisions.mask.shape
        raise ValueError(
            f"the game must be over the same words, {texts} texts of up to {words}; got {game.batch} of {game.players}"
        )
