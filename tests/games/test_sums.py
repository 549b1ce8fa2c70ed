"""Games of sums: against the plain forms of the base class, exact values, and the norm game they generalise."""

import pytest
import torch

from spinformer.games import Game, NormGame, SumGame, TableGame, estimate_values, exact_values


def make(batch=3, players=6, width=5, seed=0, mask=None):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(batch, players, width, generator=generator, dtype=torch.double)
    first = torch.randn(width, 8, generator=generator, dtype=torch.double)
    second = torch.randn(8, generator=generator, dtype=torch.double)

    def readout(sums):
        return torch.tanh(torch.tanh(sums @ first) @ second)

    return SumGame(features, readout, mask)


def draw(game, count=7, seed=1):
    return torch.rand(game.batch, count, game.players, generator=torch.Generator().manual_seed(seed)) < 0.5


MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 0, 0, 0, 0, 0]], dtype=torch.bool)


@pytest.mark.parametrize("mask", [None, MASK])
def test_marginals_are_those_of_the_base_class(mask):
    game = make(mask=mask)
    coalitions = draw(game)
    for mine, plain in zip(game.marginals(coalitions), Game.marginals(game, coalitions), strict=True):
        keep = torch.ones_like(mine, dtype=torch.bool) if mask is None else mask[:, None].expand_as(mine)
        torch.testing.assert_close(mine[keep], plain[keep])


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("rows", [slice(0, 6), slice(2, 5), slice(3, 4)])
def test_interactions_are_those_of_the_base_class(mask, rows):
    game = make(mask=mask)
    coalitions = draw(game)
    mine, plain = game.interactions(coalitions, rows), Game.interactions(game, coalitions, rows)
    keep = torch.ones_like(mine[0], dtype=torch.bool)
    if mask is not None:
        keep = (mask[:, rows, None] & mask[:, None])[:, None].expand_as(mine[0])
    for one, other in zip(mine, plain, strict=True):
        torch.testing.assert_close(one[keep], other[keep])


def test_one_player_interacts_with_nobody():
    game = make(players=1)
    delta, without = game.interactions(draw(game), slice(0, 1))
    assert not delta.any()
    torch.testing.assert_close(without[:, :, 0, 0], game.evaluate(torch.zeros(3, 7, 1, dtype=torch.bool)))


def test_values_in_blocks_are_the_same(monkeypatch):
    game = make()
    coalitions = draw(game)
    together = game.evaluate(coalitions)
    monkeypatch.setattr("spinformer.games.sums.BLOCK", (2 * 15, 2 * 15))  # 15 numbers in the sums of 3 games
    torch.testing.assert_close(game.evaluate(coalitions), together)


def test_interactions_and_marginals_carry_gradients():
    game = make()
    features = game.features.clone().requires_grad_()
    differentiable = SumGame(features, game.readout)
    coalitions = draw(differentiable)
    for name, args in (("marginals", ()), ("interactions", (slice(0, 6),))):
        mine = torch.autograd.grad(getattr(differentiable, name)(coalitions, *args)[0].sin().sum(), features)[0]
        plain = torch.autograd.grad(getattr(Game, name)(differentiable, coalitions, *args)[0].sin().sum(), features)[0]
        torch.testing.assert_close(mine, plain)


def test_the_norm_is_one_such_function():
    values = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    mine, norm = SumGame(values, lambda sums: sums.norm(dim=-1)), NormGame(values)
    for index in ("SV", "BV", "SII", "BII"):
        torch.testing.assert_close(exact_values(mine, index), exact_values(norm, index))


def test_estimates_are_within_four_standard_errors_of_exact_values():
    game = make(batch=1, players=8)
    for index in ("SV", "BV", "BII"):
        estimate = estimate_values(game, index, 4000, generator=torch.Generator().manual_seed(3))
        off = (estimate.values - exact_values(game, index)).abs()
        assert bool((off <= 4 * estimate.stderr + 1e-9).all())


def test_tilted_estimates_of_gibbs_values():
    game = make(batch=1, players=8)
    estimate = estimate_values(
        game,
        "BV",
        4000,
        weighting="gibbs",
        temperature=0.5,
        proposal="tilted",
        generator=torch.Generator().manual_seed(3),
    )
    off = (estimate.values - exact_values(game, "BV", weighting="gibbs", temperature=0.5)).abs()
    assert bool((off <= 4 * estimate.stderr).all())


def test_expected_marginals_are_exact_for_a_linear_function():
    features = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    weight = torch.randn(3, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    game = SumGame(features, lambda sums: sums @ weight)
    probability = torch.rand(2, 3, 4, generator=torch.Generator().manual_seed(2), dtype=torch.double)
    table = TableGame(game(((torch.arange(16)[:, None] >> torch.arange(4)) & 1).bool()))
    torch.testing.assert_close(game.expected_marginals(probability), table.expected_marginals(probability))


def test_a_single_game_has_no_batch_dimension():
    game = SumGame(torch.eye(3), lambda sums: sums.sum(-1))
    assert exact_values(game, "SV").shape == (3,)
    torch.testing.assert_close(exact_values(game, "SV"), torch.ones(3))


def test_bad_input():
    with pytest.raises(ValueError, match="finite"):
        SumGame(torch.full((2, 3), torch.nan), lambda sums: sums.sum(-1))
    with pytest.raises(ValueError, match="dimensions"):
        SumGame(torch.zeros(3), lambda sums: sums)
