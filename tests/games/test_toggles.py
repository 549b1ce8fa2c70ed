"""Shapley values of many players from what each adds to a few coalitions."""

import pytest
import torch

from spinformer.games import NormGame, SumGame, TableGame, exact_values
from spinformer.games.quadrature import estimate_all
from spinformer.games.toggles import LONG, PAIRS, STUDENT, contexts, pair_count, toggled_values


def readout(sums: torch.Tensor) -> torch.Tensor:
    """A logistic function: a probability, as a classifier's."""
    return (2 * sums[..., 0] + sums[..., 1] * sums[..., 2]).sigmoid()


def vectors(batch: int, players: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(batch, players, 3, generator=generator, dtype=torch.double) / players**0.5


def test_means_are_the_exact_values_and_errors_cover() -> None:
    """9 players, 200 seeds: the mean within 4 standard errors of the exact values, and 0.01 of the weights' ratio;
    the 95% intervals hold them in 90 to 99.5%."""
    table = torch.rand(1, 2**9, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    game, columns = TableGame(table), torch.arange(9)
    exact = exact_values(game, "SV")[0]
    found = [toggled_values(game, 0, columns, 8, torch.tensor(seed)) for seed in range(200)]
    values, errors = (torch.stack(part) for part in zip(*found, strict=True))
    spread = values.std(0) / 200**0.5
    assert bool(((values.mean(0) - exact).abs() < 4 * spread + 0.01).all())
    covered = float(((values - exact).abs() <= 1.96 * errors).double().mean())
    assert 0.9 < covered < 0.995


def test_pairs_cancel() -> None:
    """In a game of single players and pairs a coalition and its complement give the exact values."""
    game = SumGame(vectors(1, 7), lambda sums: sums.square().sum(-1))
    value, stderr = toggled_values(game, 0, torch.arange(7), 4, torch.tensor(3))
    torch.testing.assert_close(value, exact_values(game, "SV")[0])
    assert float(stderr.max()) < 1e-12


def test_contexts() -> None:
    coalitions, weights = contexts(50, 8, torch.tensor(0))
    assert torch.equal(coalitions[0::2], ~coalitions[1::2])
    sizes = coalitions[0::2].sum(1)
    assert sizes.tolist() == sorted(sizes.tolist()) or sizes[:4].sum() < sizes[4:].sum()  # stratified
    assert float(weights.mean()) == pytest.approx(1.0, abs=0.1)
    assert set(STUDENT) == set(range(PAIRS[0] - 1, PAIRS[1]))
    assert [pair_count(players, 2048) for players in (101, 126, 250, 500)] == [8, 8, 4, 4]


def test_many_players_add_up_in_any_batch() -> None:
    """More than LONG players: values add up, and are those of the game alone, whatever else is in the batch."""
    players = LONG + 20
    mask, drawn = torch.ones(2, players, dtype=torch.bool), vectors(2, players)
    mask[1, ::9] = False
    together = estimate_all(SumGame(drawn, readout, mask), seed=0)
    for row in range(2):
        where = mask[row].nonzero().squeeze(1)
        alone = SumGame(drawn[row : row + 1, where], readout)
        found = estimate_all(alone, seed=0)
        torch.testing.assert_close(together.shapley.values[row, where], found.shapley.values[0])
        gain = alone(torch.ones(1, len(where), dtype=torch.bool)) - alone(torch.zeros(1, len(where), dtype=torch.bool))
        assert float(found.shapley.values.sum()) == pytest.approx(float(gain), abs=1e-9)
    assert int(together.shapley.ess[0, 0]) == 512 + 16 * (players + 1)
    assert float(together.shapley.values[1, ~mask[1]].abs().max()) == 0


def test_a_small_budget_is_kept_to() -> None:
    game = SumGame(vectors(1, LONG + 5), readout)
    assert int(estimate_all(game, 64, seed=0).shapley.ess[0, 0]) == 64


def test_the_plain_form() -> None:
    values = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0))
    game = NormGame(values)
    coalitions = torch.rand(3, 6, generator=torch.Generator().manual_seed(1)) < 0.5
    found = game.toggled(1, coalitions, torch.tensor([4, 0]))
    for row, coalition in enumerate(coalitions):
        assert found[row, 0] == game(coalition[None])[1, 0]
        for place, player in enumerate((4, 0), 1):
            other = coalition.clone()
            other[player] ^= True
            torch.testing.assert_close(found[row, place], game(other[None])[1, 0])
