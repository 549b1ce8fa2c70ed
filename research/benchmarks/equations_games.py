"""The equations of the NeuroGame paper on games, NGT Eqs. 1 to 9 and 31 to 36, each recomputed in plain Python.

Every function returns the largest absolute difference from the library. The game is the norm of the sum of vectors: 5
players, 4 components, in float64.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, permutations

import torch
from torch import Tensor

from spinformer.attention import algorithm1
from spinformer.games import NormGame, exact_values

PLAYERS, WIDTH, GAMMA = 5, 4, 0.7
Members = tuple[int, ...]


@cache
def vectors() -> Tensor:
    """v_i of the players, (n, d)."""
    return torch.randn(PLAYERS, WIDTH, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def value(members: Sequence[int]) -> float:
    """v(C) = |sum of v_i over C|                                          NGT Eq. 2"""
    return math.sqrt(sum(sum(float(vectors()[i, k]) for i in members) ** 2 for k in range(WIDTH)))


def subsets(players: Sequence[int]) -> list[Members]:
    """All coalitions of these players."""
    return [part for size in range(len(players) + 1) for part in combinations(players, size)]


def others(*without: int) -> list[int]:
    """The players but these."""
    return [player for player in range(PLAYERS) if player not in without]


def gain(i: int, members: Members) -> float:
    """v(C + i) - v(C)                                                     NGT Eq. 1"""
    return value((*members, i)) - value(members)


def pair_gain(i: int, j: int, members: Members) -> float:
    """v(C + ij) - v(C + i) - v(C + j) + v(C)                              NGT Eq. 8"""
    return value((*members, i, j)) - value((*members, i)) - value((*members, j)) + value(members)


def gap(ours: Tensor, plain: Sequence[float] | Sequence[Sequence[float]]) -> float:
    """The largest difference between a tensor and plain numbers."""
    return float((ours.detach() - torch.tensor(plain, dtype=torch.float64)).abs().max())


def coalition_matrix(coalitions: Sequence[Members]) -> Tensor:
    """Coalitions as booleans, (K, n)."""
    return torch.tensor([[player in members for player in range(PLAYERS)] for members in coalitions])


def characteristic_function() -> float:
    """NGT Eq. 2, over all coalitions."""
    coalitions = subsets(range(PLAYERS))
    return gap(NormGame(vectors())(coalition_matrix(coalitions)), [value(members) for members in coalitions])


def marginal_contribution() -> float:
    """NGT Eq. 1, over all coalitions and players outside."""
    coalitions = [members for members in subsets(range(PLAYERS)) if 0 not in members]
    ours = NormGame(vectors()).marginals(coalition_matrix(coalitions)[None])[0][0, :, 0]
    return gap(ours, [gain(0, members) for members in coalitions])


def conditional_interaction() -> float:
    """NGT Eq. 8, over all contexts of a pair."""
    coalitions = subsets(others(0, 1))
    ours = NormGame(vectors()).interactions(coalition_matrix(coalitions)[None], slice(0, 1))[0][0, :, 0, 1]
    return gap(ours, [pair_gain(0, 1, members) for members in coalitions])


def shapley_value() -> float:
    """NGT Eq. 4, over all n! permutations."""
    orders = list(permutations(range(PLAYERS)))
    plain = [sum(gain(i, order[: order.index(i)]) for order in orders) / len(orders) for i in range(PLAYERS)]
    return gap(exact_values(NormGame(vectors()), "SV"), plain)


def banzhaf_index() -> float:
    """NGT Eq. 5."""
    plain = [sum(gain(i, members) for members in subsets(others(i))) / 2 ** (PLAYERS - 1) for i in range(PLAYERS)]
    return gap(exact_values(NormGame(vectors()), "BV"), plain)


def interaction_potential() -> float:
    """NGT Eq. 9 with uniform weights."""
    plain = [
        [
            0.0 if i == j else sum(pair_gain(i, j, members) for members in subsets(others(i, j))) / 2 ** (PLAYERS - 2)
            for j in range(PLAYERS)
        ]
        for i in range(PLAYERS)
    ]
    return gap(exact_values(NormGame(vectors()), "BII"), plain)


def gibbs_distribution() -> float:
    """NGT Eqs. 3 and 31: marginal contributions averaged under exp(v / gamma)."""
    plain = []
    for i in range(PLAYERS):
        weights = {members: math.exp(value(members) / GAMMA) for members in subsets(others(i))}
        total = sum(weights.values())
        plain.append(sum(weight / total * gain(i, members) for members, weight in weights.items()))
    return gap(exact_values(NormGame(vectors()), "BV", "gibbs", GAMMA), plain)


def estimators() -> float:
    """NGT Eqs. 32 to 36: Algorithm 1 against weights exp(v / gamma) / p as they are printed, on the same draws."""
    V, K, n = vectors(), 6, PLAYERS
    generator = torch.Generator().manual_seed(3)
    ours = [
        algorithm1.shapley_value(V, 0, K, GAMMA, generator),
        algorithm1.banzhaf_value(V, 0, K, GAMMA, generator),
        algorithm1.interaction(V, 0, 1, K, GAMMA, generator),
    ]
    generator.manual_seed(3)
    rest, outside = others(0), others(0, 1)
    drawn: list[list[tuple[Members, float, float]]] = [[], [], []]  # context, its probability, the difference there
    for _ in range(K):
        order = [rest[k] for k in torch.randperm(n - 1, generator=generator).tolist()]
        size = int(torch.randint(0, n, (), generator=generator))
        context = tuple(order[:size])
        drawn[0].append((context, permutation_probability(size), gain(0, context)))
    for _ in range(K):
        context = tuple(i for i, coin in zip(rest, torch.rand(n - 1, generator=generator), strict=True) if coin < 0.5)
        drawn[1].append((context, 0.5 ** (n - 1), gain(0, context)))
    for _ in range(K):
        coins = torch.rand(n - 2, generator=generator)
        context = tuple(i for i, coin in zip(outside, coins, strict=True) if coin < 0.5)
        drawn[2].append((context, 0.5 ** (n - 2), pair_gain(0, 1, context)))
    plain = []
    for rows in drawn:
        weights = [math.exp(value(context) / GAMMA) / p for context, p, _ in rows]
        plain.append(sum(w * delta for w, (_, _, delta) in zip(weights, rows, strict=True)) / sum(weights))
    return gap(torch.stack(ours), plain)


def permutation_probability(size: int) -> float:
    """s! (n - 1 - s)! / (n - 1)!                                          NGT Eq. 34"""
    return math.factorial(size) * math.factorial(PLAYERS - 1 - size) / math.factorial(PLAYERS - 1)


def permutation_total() -> float:
    """The sum of NGT Eq. 34 over all contexts, which for probabilities is 1."""
    return sum(permutation_probability(len(context)) for context in subsets(others(0)))


EQUATIONS: dict[str, Callable[[], float]] = {
    "1": marginal_contribution, "2": characteristic_function, "3": gibbs_distribution, "4": shapley_value,
    "5": banzhaf_index, "8": conditional_interaction, "9": interaction_potential, "31": gibbs_distribution,
    "32-36": estimators,
}  # fmt: skip
