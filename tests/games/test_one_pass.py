"""All three indices from one evaluation: against three estimates, each by itself."""

import pytest
import torch

from spinformer.games import TableGame, estimate_all, estimate_values
from tests.games.test_sums import MASK, make


def three(game, budget, pair_budget, seed, shared):
    estimated = [("SV", budget, 0), ("BV", budget, 1), ("BII", pair_budget, 1)]
    return [
        estimate_values(game, index, count, seed=torch.tensor(seed + offset), shared=shared, estimator="paired")
        for index, count, offset in estimated
    ]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize(("budget", "pair_budget"), [(16, 6), (9, 9), (2, 2)])
def test_a_survey_is_three_estimates(mask, shared, budget, pair_budget):
    game = make(mask=mask)
    estimates = estimate_all(game, budget, pair_budget, seed=torch.tensor(5), shared=shared)
    for mine, plain in zip(estimates[:3], three(game, budget, pair_budget, 5, shared), strict=True):
        assert mine.budget == plain.budget
        torch.testing.assert_close(mine.values, plain.values)
        keep = plain.stderr.isfinite()
        torch.testing.assert_close(mine.stderr[keep], plain.stderr[keep])
    nobody = torch.zeros(1, game.players, dtype=torch.bool)
    torch.testing.assert_close(estimates.empty, game(nobody).squeeze(-1))


def test_gradients_are_those_of_three_estimates():
    game = make()
    features = game.features.clone().requires_grad_()
    differentiable = type(game)(features, game.readout)
    estimates = estimate_all(differentiable, 8, 4, seed=torch.tensor(1))
    mine = torch.autograd.grad(sum(one.values.sin().sum() for one in estimates[:3]), features)[0]
    plain = torch.autograd.grad(sum(one.values.sin().sum() for one in three(differentiable, 8, 4, 1, True)), features)[
        0
    ]
    torch.testing.assert_close(mine, plain)


def test_a_single_game_and_one_that_is_too_large_for_one_evaluation(monkeypatch):
    table = torch.rand(2**5, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    together = estimate_all(TableGame(table), 12, 6, seed=torch.tensor(2))
    assert together.shapley.values.shape == (5,)
    assert together.interactions.values.shape == (5, 5)
    monkeypatch.setattr("spinformer.games.one_pass.MAX_ELEMENTS", 1)
    parts = estimate_all(TableGame(table), 12, 6, seed=torch.tensor(2))
    for one, other in zip(together[:3], parts[:3], strict=True):
        torch.testing.assert_close(one.values, other.values)
    assert float(together.empty) == float(parts.empty) == float(table[0])


def test_bad_budgets():
    with pytest.raises(ValueError, match="at least 2"):
        estimate_all(make(), 1, 1, seed=torch.tensor(0))
    with pytest.raises(ValueError, match="pair_budget must be at most budget"):
        estimate_all(make(), 4, 5, seed=torch.tensor(0))


@pytest.mark.parametrize("shared", [True, False])
def test_what_is_kept_for_games_of_as_many_players_serves_them(shared):
    """First asked for in inference mode, then with gradients, then by another game."""
    game = make()
    one = type(game)(game.features[:1].clone().requires_grad_(), lambda sums: game.readout(sums.expand(2, -1, -1))[:1])
    with torch.inference_mode():
        estimate_all(one, 8, 4, seed=torch.tensor(3), shared=shared)
    estimates = estimate_all(one, 8, 4, seed=torch.tensor(3), shared=shared)
    plain = three(one, 8, 4, 3, shared)
    for mine, other in zip(estimates[:3], plain, strict=True):
        torch.testing.assert_close(mine.values, other.values)
    estimates.shapley.values.square().sum().backward()
    table = TableGame(torch.rand(2**game.players, generator=torch.Generator().manual_seed(1)))
    for mine, other in zip(
        estimate_all(table, 8, 4, seed=torch.tensor(3))[:3], three(table, 8, 4, 3, True), strict=True
    ):
        torch.testing.assert_close(mine.values, other.values)
