"""Refinement: the game's values, corrected by masked passes that are spent on what the game misses.

    value(v) = value(g) + value(v - g)

for every index, since indices are linear in the game: g is the predicted game, whose values cost no pass, and v the
classifier's. Where g is close to v the difference is small, and so is the error of its estimate.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer.data.words import Words
from spinformer.explain.masked import PASSES, CachedGame, largest_error, values_until
from spinformer.games import Estimate, GameValues, estimate_all, exact_values
from spinformer.games.game import Game
from spinformer.models.masked import ConfidenceGame

# Words of a text whose predicted game is enumerated; coalitions for the values of longer ones, and how many `until` may
# ask for: they cost no pass of the classifier.
ENUMERATED, SAMPLES, PAIR_SAMPLES, MAX_SAMPLES = 14, 256, 32, 2**14


class DifferenceGame(Game):
    """v(C) - g(C) of two games of the same players."""

    def __init__(self, game: Game, predicted: Game) -> None:
        self.game, self.predicted = game, predicted
        self.batch, self.players, self.batched, self.mask = 1, game.players, True, None
        self.dtype, self.device = torch.float32, torch.device("cpu")

    def evaluate(self, coalitions: Tensor) -> Tensor:
        """(1, K)."""
        predicted = self.predicted.evaluate(coalitions.to(self.predicted.device)).cpu()
        return self.game.evaluate(coalitions) - predicted


@torch.no_grad()
def refined_values(
    real: ConfidenceGame,
    predicted: Game | None,
    words: Words,
    full_value: float,
    passes: int,
    until: float | None,
    seed: int,
    estimates: Sequence[str] = ("shapley",),
) -> tuple[GameValues, Game]:
    """Values of one text's words from masked passes, and the game that they are of.

    real: the classifier's game; predicted: the game head's, None where there is none; full_value: v(N), which is known;
    passes: masked passes, 0 for PASSES; until, estimates: see `values_until`.
    """
    budget = passes or PASSES
    game = CachedGame(real, full_value)
    if predicted is None or 2 ** min(game.players, 62) <= budget:
        return values_until(game, words, budget, until, seed, estimates), game
    values = _predicted_values(predicted, seed, until, estimates)
    left = None
    if until is not None:  # what the sampling of the predicted game leaves of the error that is allowed
        sampling = min(largest_error(values, estimates), 0.9 * until)
        left = math.sqrt(until**2 - sampling**2)
    correction = values_until(DifferenceGame(game, predicted), words, budget, left, seed, estimates)
    return _sum(values, correction), game


def _predicted_values(game: Game, seed: int, until: float | None, estimates: Sequence[str]) -> GameValues:
    """Exact for few words; otherwise, with `until`, sampled until the standard errors are at most half of it."""
    if game.players <= ENUMERATED:
        empty = game(torch.zeros(1, game.players, dtype=torch.bool, device=game.device)).squeeze(-1)
        exact = [exact_values(game, index) for index in ("SV", "BV", "BII")]
        parts = [Estimate(value, torch.zeros_like(value), torch.ones_like(value), 2**game.players) for value in exact]
        return GameValues(parts[0], parts[1], parts[2], empty)
    samples = SAMPLES
    values = estimate_all(game, samples, PAIR_SAMPLES, seed=torch.tensor(seed))
    while until is not None and largest_error(values, estimates) > until / 2 and samples < MAX_SAMPLES:
        samples *= 2
        values = estimate_all(game, samples, PAIR_SAMPLES, seed=torch.tensor(seed))
    return values


def _sum(first: GameValues, second: GameValues) -> GameValues:
    """Values add up, and so do the variances of independent estimates."""
    parts = [
        Estimate(
            one.values.cpu() + other.values,
            torch.hypot(one.stderr.cpu(), other.stderr),
            other.ess,
            other.budget,
        )
        for one, other in zip(first[:3], second[:3], strict=True)
    ]
    return GameValues(parts[0], parts[1], parts[2], first.empty.cpu() + second.empty)
