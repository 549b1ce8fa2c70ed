"""Shapley values of a game of many players: what each of them adds to a few coalitions.

    phi_i = E over q of E over C of [v(C + i) - v(C - i)],   every player in C with probability q, q uniform on 0 .. 1

One of the two is v(C) itself, so n + 1 coalitions tell what every player adds to C. Few coalitions of so many players
would tell little more than the prior of `spinformer.games.gaussian` about each.

Coalitions come with their complements, in whose mean interactions of two players cancel. Near-empty and near-full ones
differ most from the others: q = sin^2(pi u / 2) is denser there, with weights pi sqrt(q (1 - q)), and u is stratified.
"""

import math

import torch
from torch import Tensor

from spinformer._base.rng import uniforms
from spinformer.games.game import Game

# Players from which this takes less time for the same error than quadrature (docs/concepts/refinement.md).
LONG = 100
# Pairs of coalitions: at least, for the standard error, and at most.
PAIRS = (4, 8)
# Student's t of 95%, over that of many degrees of freedom, for so many pairs less 1.
STUDENT = {3: 1.624, 4: 1.417, 5: 1.312, 6: 1.248, 7: 1.206}


def pair_count(players: int, evaluations: int) -> int:
    """Pairs of coalitions within so many evaluations, as many as PAIRS allows."""
    return min(max(evaluations // (2 * (players + 1)), PAIRS[0]), PAIRS[1])


def toggled_values(game: Game, row: int, columns: Tensor, pairs: int, seed: Tensor) -> tuple[Tensor, Tensor]:
    """Shapley values of one game of the batch and their standard errors, (n,) each, in float64.

    columns: of its players; pairs: of coalitions, a number in PAIRS. The standard errors have Student's factor.
    """
    drawn, weights = contexts(len(columns), pairs, seed)
    coalitions = torch.zeros(len(drawn), game.players, dtype=torch.bool)
    coalitions[:, columns] = drawn
    values = game.toggled(row, coalitions, columns).double()  # (2 pairs, 1 + n)
    change = values[:, 1:] - values[:, :1]
    added = torch.where(drawn.to(change.device), -change, change)  # v(C + i) - v(C - i)
    means = added.unflatten(0, (pairs, 2)).mean(1)
    part = (weights / weights.sum()).to(means.device)[:, None]
    value = (part * means).sum(0)
    spread = (part * (means - value)).square().sum(0).detach() * pairs / (pairs - 1)
    return value, STUDENT[pairs - 1] * spread.sqrt()


def contexts(players: int, pairs: int, seed: Tensor) -> tuple[Tensor, Tensor]:
    """Coalitions, each followed by its complement, (2 pairs, n), and the weight of each pair, (pairs,)."""
    numbers = uniforms(seed, 1, pairs, players + 1, torch.device("cpu"))[0].double()
    place = (torch.arange(pairs) + numbers[:, 0]) / (2 * pairs)  # half of 0 .. 1: complements have the other half
    chance = (math.pi / 2 * place).sin().square()
    half = numbers[:, 1:] < chance[:, None]
    return torch.stack([half, ~half], 1).flatten(0, 1), math.pi * (chance * (1 - chance)).sqrt()
