"""SV, BV and the interactions of a game from one evaluation, where one estimate after the other takes several.

SV's and BV's coalitions stand side by side. BV's are drawn by fair coins, as BII's are, so they serve the pairs too.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer.games.control import SquaredNormControl
from spinformer.games.estimate import Estimate, estimate_values, weighted_mean
from spinformer.games.game import Game
from spinformer.games.indices import INDICES
from spinformer.games.norm import NormGame, Sums
from spinformer.games.proposals import SizeWeighted
from spinformer.games.sums import SumGame

PLAYER_INDICES = ("SV", "BV")
# Coalitions times players that are evaluated at once; where there would be more, each index is estimated by itself.
MAX_ELEMENTS = 2**23
# As many of one game are cached for the next game of as many players.
MAX_CACHED = 2**20


class GameValues(NamedTuple):
    """shapley, banzhaf: (B, n) each; interactions: Banzhaf's, (B, n, n); empty: v of the empty coalition, (B,)."""

    shapley: Estimate
    banzhaf: Estimate
    interactions: Estimate
    empty: Tensor


class NormValues(NamedTuple):
    """values: SV and BV, (B, 2, n); sums: of BV's coalitions, which are also those of BII."""

    values: Tensor
    sums: Sums


@full_precision
def estimate_norm_values(game: NormGame, budget: int, *, seed: Tensor, shared: bool) -> NormValues:
    """mean over k of (Delta_i v(T_k) - Delta_i h(T_k)) + the index of h, for SV and BV

    What `estimate_values` gives with the control variate h for SV from `seed` and for BV from `seed + 1`, in half the
    operations: on a GPU a short input costs as much as it has operations, however small they are.
    """
    coalitions = _draw_players(game, budget, seed, shared)
    control = SquaredNormControl(game)
    sums = game.sums(coalitions)
    singles = game.singles_of(sums)
    rest = game.marginals_of(singles)[0] - control.marginals(singles)
    closed = control.exact_players([INDICES[name] for name in PLAYER_INDICES])
    values = rest.unflatten(1, (len(PLAYER_INDICES), budget)).mean(2) + closed
    if game.mask is not None:
        values = values * game.mask[:, None]
    return NormValues(values, Sums(*(part[:, budget:] for part in sums)))


@full_precision
def estimate_all(game: Game, budget: int, pair_budget: int, *, seed: Tensor, shared: bool = True) -> GameValues:
    """Delta_i v(C - i) = s_i (v(C) - v(C ^ i)),   Delta_ij v(C - ij) = s_i s_j (v(C) - v(C ^ i) - v(C ^ j) + v(C ^ ij))

    with C ^ i for C with i moved in or out, and s_i = 1 where i is in C, -1 where not (NGT Eqs. 1, 8). These are what
    `estimate_values` gives for SV from `seed`, for BV from `seed + 1`, both of `budget` coalitions, and for BII from
    `seed + 1` of `pair_budget`, under the uniform weighting, paired. The coalitions of BII are the first of BV's, so
    the values around them serve both: 2 budget (1 + n) + pair_budget n (n - 1) / 2 + 1 values in one evaluation.
    """
    checks.at_least("budget", budget, 2)
    checks.at_least("pair_budget", pair_budget, 2)
    if pair_budget > budget:
        raise ValueError(f"pair_budget must be at most budget, which is {budget}; got {pair_budget}")
    n = game.players
    elements = n * (2 * budget * (1 + n) + pair_budget * n * (n - 1) // 2)
    if game.batch * elements > MAX_ELEMENTS:
        return _one_by_one(game, budget, pair_budget, seed, shared)
    unpadded = game.batch == 1 and game.order() is None and (game.mask is None or bool(game.mask.all()))
    if elements <= MAX_CACHED and unpadded and game.device.type == "cpu" and not seed.dim():
        inside, coalitions = _cached_coalitions(n, budget, pair_budget, int(seed))
    else:
        inside, coalitions = _coalitions(game, budget, pair_budget, seed, shared)
    first, second = torch.triu_indices(n, n, 1, device=inside.device)
    fair = slice(budget, budget + pair_budget)
    sizes = [2 * budget, 2 * budget * n, pair_budget * len(first), 1]
    coalitions = coalitions if game.mask is None else coalitions & game.mask[:, None]
    value, moved, both, empty = game.evaluate(coalitions).split(sizes, 1)
    moved, both = moved.unflatten(1, (-1, n)), both.unflatten(1, (pair_budget, -1))  # (B, 2 K, n), (B, K', pairs)
    sign = 2 * inside.to(value.dtype) - 1
    single = (sign * (value[..., None] - moved)).unflatten(1, (2, budget)).flatten(0, 1)  # (2 B, K, n)
    players = [part.unflatten(0, (-1, 2)) for part in weighted_mean(single, None, 2)]  # (B, 2, n)
    around, sign = moved[:, fair], sign[:, fair]
    change = value[:, fair, None] - around[..., first] - around[..., second] + both
    pairs = weighted_mean(sign[..., first] * sign[..., second] * change, None, 2)
    square = [_square(part, first, second, n) for part in pairs]
    if game.mask is not None:
        shown = game.mask[:, None] & game.mask[:, :, None]
        players[:2] = [part * game.mask[:, None] for part in players[:2]]
        square[:2] = [part * shown for part in square[:2]]
    shapley, banzhaf = zip(*(part.unbind(1) for part in players), strict=True)
    return GameValues(
        _estimate(game, shapley, budget),
        _estimate(game, banzhaf, budget),
        _estimate(game, square, pair_budget),
        game.unbatch(empty.squeeze(1)),
    )


def _draw_players(game: Game, budget: int, seed: Tensor, shared: bool) -> Tensor:
    """K = `budget` coalitions for SV from `seed`, then K for BV from `seed + 1`: (B, 2 K, n)."""
    counts = game.counts()
    draws = [
        SizeWeighted(index, counts).draw(game, budget, seed + offset, paired=True, shared=shared)
        for offset, index in enumerate(PLAYER_INDICES)
    ]
    return torch.cat(draws, 1)


def _coalitions(game: Game, budget: int, pair_budget: int, seed: Tensor, shared: bool) -> tuple[Tensor, Tensor]:
    """Those drawn, (B, 2 K, n), and all to evaluate: the same, with one player moved, with two, and the empty one."""
    inside, n = _draw_players(game, budget, seed, shared), game.players
    member = torch.eye(n, dtype=torch.bool, device=inside.device)
    first, second = torch.triu_indices(n, n, 1, device=inside.device)
    parts = [
        inside,
        (inside[:, :, None] ^ member).flatten(1, 2),
        (inside[:, budget : budget + pair_budget, None] ^ (member[first] | member[second])).flatten(1, 2),
        torch.zeros_like(inside[:, :1]),
    ]
    return inside, torch.cat(parts, 1)


@lru_cache(maxsize=32)
def _cached_coalitions(n: int, budget: int, pair_budget: int, seed: int) -> tuple[Tensor, Tensor]:
    """`_coalitions` of one game of n players: the same for every such game, and slow to make."""
    with torch.inference_mode(False):
        game = SumGame(torch.zeros(1, n, 1), lambda sums: sums.squeeze(-1))
        return _coalitions(game, budget, pair_budget, torch.tensor(seed), True)


def _estimate(game: Game, parts: Sequence[Tensor], budget: int) -> Estimate:
    values, stderr, ess = map(game.unbatch, parts)
    return Estimate(values, stderr, ess, budget)


def _square(pairs: Tensor, first: Tensor, second: Tensor, n: int) -> Tensor:
    """(B, pairs) -> (B, n, n), symmetric, 0 on the diagonal."""
    upper = pairs.new_zeros(len(pairs), n, n)
    upper[:, first, second] = pairs
    return upper + upper.mT


def _one_by_one(game: Game, budget: int, pair_budget: int, seed: Tensor, shared: bool) -> GameValues:
    """`estimate_all` with an evaluation for each index."""
    shapley = estimate_values(game, "SV", budget, seed=seed, shared=shared, estimator="paired")
    banzhaf = estimate_values(game, "BV", budget, seed=seed + 1, shared=shared, estimator="paired")
    pairs = estimate_values(game, "BII", pair_budget, seed=seed + 1, shared=shared, estimator="paired")
    nobody = torch.zeros(1, game.players, dtype=torch.bool, device=game.device)
    return GameValues(shapley, banzhaf, pairs, game(nobody).squeeze(-1))
