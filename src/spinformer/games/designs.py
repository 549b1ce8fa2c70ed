"""Which coalitions to ask about: no players, all players, and pairs of a coalition and its complement."""

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.rng import uniforms
from spinformer.games.coalitions import members
from spinformer.games.kernel_shap import distinct_rows

# Draws for each pair that is wanted, at most: coalitions that were drawn before are passed over.
REPEATS = 16


def all_coalitions(players: int) -> Tensor:
    """(2^n, n) booleans; bit i of the row says whether player i is in."""
    return (torch.arange(2**players)[:, None] >> torch.arange(players) & 1).bool()


def paired_design(players: int, count: int, seed: Tensor) -> Tensor:
    """At most `count` different coalitions: none, all, then C and N - C in turn, P(|C| = s) ~ 1 / sqrt(s (n - s))

    (K, n) booleans, in the order of the draws, so a larger count begins with the same coalitions. Where 2^n is at most
    `count`, all of them. Small and large coalitions count most for Shapley values, middling ones for pairs: the law is
    between the two.
    """
    checks.at_least("players", players, 1)
    checks.at_least("count", count, 2)
    if 2 ** min(players, 62) <= count:
        rows = all_coalitions(players)
        return torch.cat([rows[:1], rows[-1:], rows[1:-1]])
    wanted = (count - 2) // 2
    drawn = _draw(players, 2 * wanted + 2, seed)
    first = _first_of_each(drawn)
    for repeats in range(2, REPEATS + 1):
        if len(first) >= wanted:
            break
        drawn = _draw(players, repeats * (2 * wanted + 2), seed)
        first = _first_of_each(drawn)
    half = drawn[first[:wanted]]
    ends = torch.tensor([[False], [True]]).expand(2, players)
    return torch.cat([ends, torch.stack([half, ~half], 1).flatten(0, 1)])


def _draw(players: int, draws: int, seed: Tensor) -> Tensor:
    """(draws, n) coalitions, neither empty nor full; more draws begin with the same ones."""
    numbers = uniforms(seed, 1, draws, players + 1, torch.device("cpu"))[0]
    size = torch.arange(1, players, dtype=torch.float64)
    law = (size * (players - size)).rsqrt().cumsum(0)
    sizes = 1 + torch.searchsorted(law / law[-1], numbers[:, 0].double().contiguous()).clamp_max(players - 2)
    return members(numbers[None, :, 1:], sizes[None], torch.ones(1, players, dtype=torch.bool))[0]


def _first_of_each(drawn: Tensor) -> Tensor:
    """Positions of the draws that are neither equal to an earlier one nor its complement, in order."""
    half = drawn ^ ~drawn[:, :1]  # of a coalition and its complement, the one with the first player
    distinct, index = distinct_rows(half)
    earliest = torch.full((len(distinct),), len(drawn)).scatter_reduce(0, index, torch.arange(len(drawn)), "amin")
    return earliest.sort().values
