"""SV and BV of norm games from one evaluation, where one estimate after the other takes several.

SV's and BV's coalitions stand side by side. BV's are drawn by fair coins, as BII's are, so they serve the pairs too.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer._base.rng import as_seed
from spinformer.games.blocked_pairs import can_block_pairs, controlled_pairs
from spinformer.games.control import SquaredNormControl
from spinformer.games.game import Game
from spinformer.games.indices import INDICES
from spinformer.games.norm import NormGame, Sums
from spinformer.games.proposals import SizeWeighted
from spinformer.games.twins import mean_of_twin_pairs, mean_of_twins
from spinformer.games.values import PLAYER_INDICES
from spinformer.kernels.chances import chances_of
from spinformer.kernels.controlled_pairs import can_control_pairs, control_pairs
from spinformer.kernels.players import can_value_players, value_players


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
    if game.activation in ("identity", "relu") and can_value_players(game.given, budget):
        return _fused(game, budget, as_seed(seed), shared)
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


@full_precision
def estimate_norm_pairs(game: NormGame, sums: Sums) -> Tensor | None:
    """BII from the sums of its coalitions, with the control variate, (B, n, n)

    What `estimate_values` gives for BII from the seed of these coalitions. None where there is no quicker way.
    """
    if game.activation not in ("identity", "relu"):
        return None
    if not can_control_pairs(game.given, sums.products.shape[1]):
        if not can_block_pairs(game):
            return None
        return mean_of_twin_pairs(controlled_pairs(game, sums), game.twins())
    counts = game.counts()
    chances = chances_of(counts, game.players, game.mask is not None, fewer=1)
    arguments = (game.squares, game.alignment, game.grand, game.scale, game.mask, counts, *chances)
    pairs, *_ = control_pairs(game.given, game.narrow, sums.products, sums.inside, sums.square.squeeze(-1), *arguments)
    return mean_of_twin_pairs(pairs, game.twins())


def _fused(game: NormGame, budget: int, seed: Tensor, shared: bool) -> NormValues:
    """The same by the operator of `spinformer.kernels.players`."""
    rank = game.order() if not game.by_column else None if game.mask is None else game.mask.cumsum(-1) - 1
    counts = game.counts()
    chances = chances_of(counts, game.players, game.mask is not None)
    values, products, totals, game.alignment, game.grand, inside, *_ = value_players(
        game.given, game.narrow, game.squares, game.scale, game.mask, counts, rank, seed, *chances, budget, shared
    )
    sums = Sums(inside[:, budget : 2 * budget], totals[..., None], products)
    return NormValues(mean_of_twins(values, game.twins()), sums)


def _draw_players(game: Game, budget: int, seed: Tensor, shared: bool) -> Tensor:
    """K = `budget` coalitions for SV from `seed`, then K for BV from `seed + 1`: (B, 2 K, n)."""
    counts = game.counts()
    draws = [
        SizeWeighted(index, counts).draw(game, budget, seed + offset, paired=True, shared=shared)
        for offset, index in enumerate(PLAYER_INDICES)
    ]
    return torch.cat(draws, 1)
