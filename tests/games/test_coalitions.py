"""Coalitions drawn by size and members: the laws of both, games of different sizes side by side."""

import math
from itertools import combinations

import pytest
import torch

from spinformer.games.coalitions import kernel_sizes, members, uniform_sizes

COUNTS = torch.tensor([6, 4, 2, 1])
DRAWS = 30_000


def numbers(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(8))


def laws(name):
    for count in COUNTS.tolist():
        if name == "uniform":
            yield dict.fromkeys(range(count + 1), 1 / (count + 1))
        else:
            weights = {size: 1 / (size * (count - size)) for size in range(1, count)} or {1: 1.0}
            yield {size: weight / sum(weights.values()) for size, weight in weights.items()}


@pytest.mark.parametrize("name", ["uniform", "kernel"])
def test_sizes_follow_their_law(name):
    """The share of each size is within 4 standard errors of its probability, and no other size occurs."""
    uniform = numbers(4, DRAWS)
    sizes = uniform_sizes(uniform, COUNTS) if name == "uniform" else kernel_sizes(uniform, COUNTS, 6)
    for row, law in enumerate(laws(name)):
        share = sizes[row].bincount(minlength=7) / DRAWS
        for size in range(7):
            expected = law.get(size, 0.0)
            assert abs(float(share[size]) - expected) <= 4 * math.sqrt(expected * (1 - expected) / DRAWS) + 1e-9


def test_members_of_a_size_are_alike():
    """Each of the 15 pairs of 6 players, of which one of 7 columns is none, within 4 standard errors of 1/15."""
    mask = torch.tensor([[True, True, False, True, True, True, True]])
    drawn = members(numbers(1, DRAWS, 7), torch.full((1, DRAWS), 2), mask)[0]
    assert (drawn.sum(-1) == 2).all()
    assert not drawn[:, 2].any()
    players = [player for player in range(7) if player != 2]
    for pair in combinations(players, 2):
        share = float(drawn[:, pair].all(-1).float().mean())
        assert abs(share - 1 / 15) <= 4 * math.sqrt(14 / 225 / DRAWS)


def test_the_ends_and_the_lowest_scores():
    mask = torch.arange(3) < torch.tensor([[3], [2]])
    scores = torch.tensor([[0.5, 0.1, 0.3], [0.9, 0.2, 0.0]])[:, None].expand(-1, 4, -1)
    drawn = members(scores, torch.arange(4).expand(2, -1), mask)
    assert drawn[0].tolist() == [[False] * 3, [False, True, False], [False, True, True], [True] * 3]
    assert drawn[1].tolist() == [[False] * 3, [False, True, False], [True, True, False], [True, True, False]]
