"""SV and BV of norm games from one evaluation, where one estimate after the other takes several.

SV's and BV's coalitions stand side by side. BV's are drawn by fair coins, as BII's are, so they serve the pairs too.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer._base.rng import as_seed
from spinformer.games.control import SquaredNormControl
from spinformer.games.game import Game
from spinformer.games.indices import INDICES
from spinformer.games.norm import NormGame, Sums
from spinformer.games.proposals import SizeWeighted
from spinformer.games.twins import mean_of_twins

PLAYER_INDICES = ("SV", "BV")


class NormValues(NamedTuple):
    """values: SV and BV, (B, 2, n); sums: of BV's coalitions, which are also those of BII."""

    values: Tensor
    sums: Sums


@full_precision
def estimate_norm_values(game: NormGame, budget: int, *, seed: Tensor | int, shared: bool) -> NormValues:
    """mean over k of (Delta_i v(T_k) - Delta_i h(T_k)) + the index of h, for SV and BV

    What `estimate_values` gives with the control variate h for SV from `seed` and for BV from `seed + 1`, in half the
    operations: on a GPU a short input costs as much as it has operations, however small they are.
    """
    checks.instance("game", game, NormGame)
    checks.at_least("budget", budget, 2)
    coalitions = _draw_players(game, budget, as_seed(seed), shared)
    control = SquaredNormControl(game)
    sums = game.sums(coalitions)
    singles = game.singles_of(sums)
    rest = game.marginals_of(singles)[0] - control.marginals(singles)
    closed = control.exact_players([INDICES[name] for name in PLAYER_INDICES])
    values = rest.unflatten(1, (len(PLAYER_INDICES), budget)).mean(2) + closed
    if game.mask is not None:
        values = values * game.mask[:, None]
    values = mean_of_twins(values, game.twins())
    return NormValues(values, Sums(*(part[:, budget:] for part in sums)))


def _draw_players(game: Game, budget: int, seed: Tensor, shared: bool) -> Tensor:
    """K = `budget` coalitions for SV from `seed`, then K for BV from `seed + 1`: (B, 2 K, n)."""
    counts = game.counts()
    draws = [
        SizeWeighted(index, counts).draw(game, budget, seed + offset, paired=True, shared=shared)
        for offset, index in enumerate(PLAYER_INDICES)
    ]
    return torch.cat(draws, 1)
