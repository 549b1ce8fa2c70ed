"""SV, BV and BII of a game from one evaluation of all coalitions that they need, where three estimates take six."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer import checks
from spinformer.games.estimate import Estimate, estimate_values, weighted_mean
from spinformer.games.game import Game
from spinformer.games.indices import Index
from spinformer.games.proposals import SizeWeighted
from spinformer.games.sums import SumGame
from spinformer.precision import full_precision

NAMES: tuple[Index, ...] = ("SV", "BV")
# Coalitions times players that are evaluated at once; where there would be more, each index is estimated by itself.
MOST = 2**23
# So many of one game that are kept for the next of as many players.
PLANNED = 2**20


class Survey(NamedTuple):
    """shapley, banzhaf: (B, n) each; interactions: Banzhaf's, (B, n, n); empty: v of nobody, (B,)."""

    shapley: Estimate
    banzhaf: Estimate
    interactions: Estimate
    empty: Tensor


@full_precision
def survey(game: Game, budget: int, pair_budget: int, *, seed: Tensor, shared: bool = True) -> Survey:
    """Delta_i v(C - i) = s_i (v(C) - v(C ^ i)),   Delta_ij v(C - ij) = s_i s_j (v(C) - v(C ^ i) - v(C ^ j) + v(C ^ ij))

    with C ^ i for C with i moved in or out, and s_i = 1 where i is in C, -1 where not. These are what `estimate_values`
    gives for SV from `seed`, for BV from `seed + 1`, both of `budget` coalitions, and for BII from `seed + 1` of
    `pair_budget`, under the uniform weighting, paired: the coalitions of BII are the first of BV's, so that the values
    around them serve both, and 2 budget (1 + n) + pair_budget n (n - 1) / 2 + 1 values are asked for together.
    """
    checks.at_least("budget", budget, 2)
    checks.at_least("pair_budget", pair_budget, 2)
    if pair_budget > budget:
        raise ValueError(f"pair_budget must be at most budget, which is {budget}; got {pair_budget}")
    n = game.players
    if game.batch * n * (2 * budget * (1 + n) + pair_budget * n * (n - 1) // 2) > MOST:
        return _one_by_one(game, budget, pair_budget, seed, shared)
    few = n * (2 * budget * (1 + n) + pair_budget * n * (n - 1) // 2) <= PLANNED
    whole = game.batch == 1 and game.order() is None and (game.mask is None or bool(game.mask.all()))
    if few and whole and game.device.type == "cpu" and not seed.dim():
        inside, asked = _plan(n, budget, pair_budget, int(seed))
    else:
        inside, asked = _coalitions(game, budget, pair_budget, seed, shared)
    first, second = torch.triu_indices(n, n, 1, device=inside.device)
    fair = slice(budget, budget + pair_budget)
    sizes = [2 * budget, 2 * budget * n, pair_budget * len(first), 1]
    asked = asked if game.mask is None else asked & game.mask[:, None]
    value, moved, both, empty = game.evaluate(asked).split(sizes, 1)
    moved, both = moved.unflatten(1, (-1, n)), both.unflatten(1, (pair_budget, -1))
    sign = 2 * inside.to(value.dtype) - 1
    single = (sign * (value[..., None] - moved)).unflatten(1, (2, budget)).flatten(0, 1)  # (2 B, K, n)
    words = [part.unflatten(0, (-1, 2)) for part in weighted_mean(single, None, 2)]  # (B, 2, n)
    around, sign = moved[:, fair], sign[:, fair]
    change = value[:, fair, None] - around[..., first] - around[..., second] + both
    pairs = weighted_mean(sign[..., first] * sign[..., second] * change, None, 2)
    square = [_square(part, first, second, n) for part in pairs]
    if game.mask is not None:
        apart = game.mask[:, None] & game.mask[:, :, None]
        words[:2] = [part * game.mask[:, None] for part in words[:2]]
        square[:2] = [part * apart for part in square[:2]]
    shapley, banzhaf = zip(*(part.unbind(1) for part in words), strict=True)
    return Survey(
        _estimate(game, shapley, budget),
        _estimate(game, banzhaf, budget),
        _estimate(game, square, pair_budget),
        game.unbatch(empty.squeeze(1)),
    )


def _coalitions(game: Game, budget: int, pair_budget: int, seed: Tensor, shared: bool) -> tuple[Tensor, Tensor]:
    """Those drawn, (B, 2 K, n), and all whose values are asked for: them, with one player moved, with two, nobody."""
    counts, n = game.counts(), game.players
    drawn = [
        SizeWeighted(name, counts).draw(game, budget, seed + place, paired=True, shared=shared)
        for place, name in enumerate(NAMES)
    ]
    inside = torch.cat(drawn, 1)
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
def _plan(n: int, budget: int, pair_budget: int, seed: int) -> tuple[Tensor, Tensor]:
    """`_coalitions` of one game of n players: the same for every game, and a good part of the time that it takes."""
    with torch.inference_mode(False):
        game = SumGame(torch.zeros(1, n, 1), lambda sums: sums.squeeze(-1))
        return _coalitions(game, budget, pair_budget, torch.tensor(seed), True)


def _estimate(game: Game, parts: Sequence[Tensor], budget: int) -> Estimate:
    values, stderr, ess = map(game.unbatch, parts)
    return Estimate(values, stderr, ess, budget)


def _square(pairs: Tensor, first: Tensor, second: Tensor, n: int) -> Tensor:
    """(B, pairs) -> (B, n, n), symmetric, 0 on the diagonal."""
    found = pairs.new_zeros(len(pairs), n, n)
    found[:, first, second] = pairs
    return found + found.mT


def _one_by_one(game: Game, budget: int, pair_budget: int, seed: Tensor, shared: bool) -> Survey:
    shapley = estimate_values(game, "SV", budget, seed=seed, shared=shared, estimator="paired")
    banzhaf = estimate_values(game, "BV", budget, seed=seed + 1, shared=shared, estimator="paired")
    pairs = estimate_values(game, "BII", pair_budget, seed=seed + 1, shared=shared, estimator="paired")
    nobody = torch.zeros(1, game.players, dtype=torch.bool, device=game.device)
    return Survey(shapley, banzhaf, pairs, game(nobody).squeeze(-1))
