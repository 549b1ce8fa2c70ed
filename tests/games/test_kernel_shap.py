"""KernelSHAP: the regression against plain equations, its coalitions against a loop over the draws."""

import math

import pytest
import torch

from spinformer.games import TableGame, exact_values
from spinformer.games.coalitions import kernel_sizes, members
from spinformer.games.designs import all_coalitions
from spinformer.games.kernel_shap import REPEATS, every_coalition, least_squares, sample_kernel


def test_all_coalitions_give_exact_shapley_values(generator: torch.Generator) -> None:
    table = torch.rand(2**6, generator=generator, dtype=torch.float64)
    coalitions, weight = every_coalition(6)
    assert torch.equal(coalitions, all_coalitions(6)[1:-1])
    found = least_squares(coalitions, weight, table[1:-1] - table[0], table[-1] - table[0])
    torch.testing.assert_close(found, exact_values(TableGame(table), "SV"))
    for size, part in zip(coalitions.sum(1).tolist(), weight.tolist(), strict=True):
        assert part == pytest.approx(5 / (math.comb(6, size) * size * (6 - size)), rel=1e-6)


def test_the_least_squares_are_those_of_lagrange(generator: torch.Generator) -> None:
    """Some coalitions, with any weights: the stationary point under the constraint, with its multiplier."""
    coalitions = torch.rand(20, 5, generator=generator) < 0.4
    weight, values = torch.rand(2, 20, generator=generator, dtype=torch.float64)
    total = torch.tensor(0.7, dtype=torch.float64)
    member, one = coalitions.double(), torch.ones(5, 1, dtype=torch.float64)
    moment = member.T @ (weight[:, None] * member)
    matrix = torch.cat([torch.cat([moment, one], 1), torch.cat([one.T, torch.zeros(1, 1)], 1)])
    solved = torch.linalg.solve(matrix, torch.cat([member.T @ (weight * values), total[None]]))
    torch.testing.assert_close(least_squares(coalitions, weight, values, total), solved[:5])


@pytest.mark.parametrize(("players", "budget"), [(4, 10), (5, 24), (9, 40), (70, 12)])
def test_pairs_are_counted_as_long_as_the_budget_lasts(players: int, budget: int, generator: torch.Generator) -> None:
    """One draw after the other: each coalition beside its complement, with the number of its draws."""
    numbers = torch.rand(REPEATS * (budget // 2), players + 1, generator=generator)
    sample = sample_kernel(lambda draws: numbers[:draws], budget)
    sizes = kernel_sizes(numbers[None, :, 0], torch.tensor([players]), players)
    drawn = members(numbers[None, :, 1:], sizes, torch.ones(1, players, dtype=torch.bool))[0]
    counts: dict[tuple[bool, ...], int] = {}
    for row in drawn.tolist():
        key = tuple(row) if row[0] else tuple(not member for member in row)
        if key not in counts and len(counts) == budget // 2:
            break
        counts[key] = counts.get(key, 0) + 1
    half = len(sample.coalitions) // 2
    assert 2 * half <= budget
    assert torch.equal(sample.coalitions[half:], ~sample.coalitions[:half])
    assert torch.equal(sample.weight[half:], sample.weight[:half])
    found = zip(map(tuple, sample.coalitions[:half].tolist()), sample.weight.tolist(), strict=False)
    assert dict(found) == counts


def test_few_coalitions_are_all_found() -> None:
    """Of 3 players there are 3 pairs, whatever the budget; draws end at REPEATS for each pair of it."""
    asked = []

    def uniforms(draws: int) -> torch.Tensor:
        asked.append(draws)
        return torch.rand(draws, 4, generator=torch.Generator().manual_seed(0))

    sample = sample_kernel(uniforms, 20)
    assert len(sample.coalitions.unique(dim=0)) == len(sample.coalitions) == 6
    assert asked[0] == 20
    assert asked[-1] == REPEATS * 10 == int(sample.weight.sum()) // 2
