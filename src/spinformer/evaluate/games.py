"""How well a game that is told of a text agrees with what the classifier really does with its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from spinformer import checks
from spinformer.evaluate.correlation import KINDS, Kind, correlation, r_squared
from spinformer.evaluate.decisions import Decisions, random_coalitions
from spinformer.evaluate.faithfulness import Better, Summary, defined
from spinformer.games.exact import exact_values
from spinformer.games.game import Game

MAX_WORDS = 12


@dataclass(frozen=True)
class Fit:
    """R² = 1 - sum (real - predicted)² / sum (real - mean real)²

    predicted, real: (B, K), v(C) and p_y(C) of the same coalitions. pooled: over all of them, about their one mean;
    within: over all of them, about each text's own mean, so that knowing which texts are easy earns nothing; per_text:
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
        return torch.tensor([r_squared(found, real, real.mean()) for found, real in rows], dtype=torch.float64)

    @classmethod
    def join(cls, parts: Sequence["Fit"]) -> "Fit":
        """Of several batches, as if they had been one."""
        return cls(torch.cat([part.predicted for part in parts]), torch.cat([part.real for part in parts]))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        texts, coalitions = self.real.shape
        found = {"pooled": defined(self.pooled), "within": defined(self.within)}
        return {**found, "texts": texts, "coalitions": coalitions}


class GameFit:
    """R² of v(C) against p_y(C) over random coalitions C, |C| uniform from 0 to W (see `Fit`)

    budget: coalitions a text, one forward pass each; seed: of the coalitions, which depend on it and on the text's row.
    """

    name: ClassVar[str] = "game_fit"
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (-torch.inf, 1.0)

    def __init__(self, budget: int = 64, seed: int = 0) -> None:
        checks.at_least("budget", budget, 2)
        self.budget, self.seed = budget, seed

    def __call__(self, decisions: Decisions, game: Game) -> Fit:
        """game: one for each text, over the same words."""
        _same_words(decisions, game)
        coalitions = random_coalitions(decisions, self.budget, self.seed)
        with torch.no_grad():
            found = game(coalitions.to(game.device)).double().cpu()
        predicted = found if game.batched else found[None]
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
        return torch.tensor([correlation(found, real, kind) for found, real in rows], dtype=torch.float64)

    @classmethod
    def join(cls, parts: Sequence["Agreement"]) -> "Agreement":
        """Of several batches, as if they had been one."""
        return cls(
            tuple(one for part in parts for one in part.predicted), tuple(one for part in parts for one in part.real)
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: pooled, and mean over texts with its standard error."""
        found: dict[str, Any] = {"texts": len(self.real), "pairs": sum(map(len, self.real))}
        for kind in KINDS:
            found[kind] = {"pooled": defined(self.pooled(kind)), **Summary.of(self.per_text(kind)).to_dict()}
        return found


class InteractionAgreement:
    """corr over pairs i < j of predicted_ij and the Banzhaf interaction of p_y (see `Agreement`)

    The real interactions are exact, 2^W forward passes a text: texts of more than 12 words are refused. They do not
    change with what is predicted: `real` computes them once, to be passed along for several predictions.
    """

    name: ClassVar[str] = "interaction_agreement"
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def real(self, decisions: Decisions) -> Tensor:
        """(B, W, W), symmetric, 0 on the diagonal and for padding."""
        counts = decisions.words.counts.tolist()
        for row, count in zip(decisions.rows, counts, strict=True):
            if count > MAX_WORDS:
                raise ValueError(f"exact interactions take at most {MAX_WORDS} words a text; row {row} has {count}")
        found = torch.zeros(len(counts), max(counts), max(counts), dtype=torch.float64)
        for place, count in enumerate(counts):
            if count > 1:
                found[place, :count, :count] = exact_values(decisions.game(place), "BII")[0].double().cpu()
        return found

    def __call__(self, decisions: Decisions, predicted: Game | Tensor, real: Tensor | None = None) -> Agreement:
        """predicted: a game over the same words, whose exact Banzhaf interactions are taken, or them, (B, W, W).

        A matrix that is not symmetric stands for the mean of its two halves.
        """
        expected = self.real(decisions) if real is None else real
        if isinstance(predicted, Game):
            _same_words(decisions, predicted)
            with torch.no_grad():
                found = exact_values(predicted, "BII")
            found = found if predicted.batched else found[None]
        else:
            found = predicted
        width = decisions.mask.shape[1]
        parts = []
        for name, matrix in (("predicted", found), ("real", expected)):
            checks.shape(name, matrix, (len(decisions), width, width))
            symmetric = (matrix + matrix.mT).detach().double().cpu() / 2
            parts.append(_pairs(name, symmetric, decisions.words.counts.tolist()))
        return Agreement(*parts)


def _pairs(name: str, matrices: Tensor, counts: Sequence[int]) -> tuple[Tensor, ...]:
    """What stands above the diagonal, for each text."""
    found = []
    for matrix, count in zip(matrices, counts, strict=True):
        first, second = torch.triu_indices(count, count, 1)
        found.append(matrix[first, second])
    checks.finite(name, torch.cat(found))
    return tuple(found)


def _same_words(decisions: Decisions, game: Game) -> None:
    if (game.batch, game.players) != tuple(decisions.mask.shape):
        texts, words = decisions.mask.shape
        raise ValueError(
            f"the game must be over the same words, {texts} texts of up to {words}; got {game.batch} of {game.players}"
        )
