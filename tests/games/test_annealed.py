"""The annealed proposal: its draws against exact probabilities, its estimates against exact values, its error bars."""

import pytest
import torch

from spinformer.games import (
    NormGame,
    SumGame,
    TableGame,
    estimate_low_rank,
    estimate_values,
    exact_values,
    make_proposal,
)
from spinformer.games.annealed import GROUP, RESAMPLE_BELOW, Annealed

GIBBS = {"weighting": "gibbs", "proposal": "annealed"}


def learnt(batch=3, players=6, mask=None, seed=0, width=12, sharp=8.0):
    """Like a learnt game: a random network of the members' mean, scaled so that v covers [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(batch, players, width, generator=generator, dtype=torch.double)
    first = torch.randn(width, 32, generator=generator, dtype=torch.double)
    second = torch.randn(32, generator=generator, dtype=torch.double)

    def readout(sums):
        hidden = torch.nn.functional.softsign(sums @ first / (0.7 * width**0.5))
        return torch.sigmoid(sharp * (hidden @ second) / 32**0.5)

    return SumGame(features, readout, mask)


def norm(batch=3, players=6, mask=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = 0.4 * torch.randn(batch, players, 4, generator=generator, dtype=torch.double)
    return NormGame(values, mask)


def table(batch=3, players=6, mask=None, seed=0):
    values = torch.rand(batch, 2**players, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    return TableGame(values)


MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 0]], dtype=torch.bool)
GAMES = [learnt, norm, table]


@pytest.mark.parametrize("index", ["SV", "BV", "BII", "SII"])
@pytest.mark.parametrize("make", GAMES)
@pytest.mark.parametrize("estimator", ["plain", "paired"])
def test_estimate_is_within_its_error_of_the_exact_value(make, index, estimator):
    """Bound: 4 standard errors for every value; padding has none."""
    game = make(mask=MASK)
    exact = exact_values(game, index, "gibbs", 0.25)
    estimate = estimate_values(game, index, 1000, temperature=0.25, estimator=estimator, seed=torch.tensor(1), **GIBBS)
    moving = estimate.stderr > 1e-9
    assert float(((estimate.values - exact)[moving] / estimate.stderr[moving]).abs().max()) < 4
    torch.testing.assert_close(estimate.values[~moving], exact[~moving], rtol=0, atol=1e-9)
    assert estimate.trusted.all()


@pytest.mark.parametrize("index", ["SV", "BV", "BII"])
def test_other_targets_have_weights_too(index):
    """Uniform weights from Gibbs draws: within 4 standard errors."""
    game = learnt()
    estimate = estimate_values(game, index, 2000, temperature=0.5, proposal="annealed", seed=torch.tensor(2))
    exact = exact_values(game, index)
    moving = estimate.stderr > 1e-9
    assert float(((estimate.values - exact)[moving] / estimate.stderr[moving]).abs().max()) < 4


@pytest.mark.parametrize("make", GAMES)
@pytest.mark.parametrize("players", [2, 6])
def test_draws_have_the_exact_probabilities(make, players):
    """10,000 weighted draws: total variation from the Gibbs distribution below twice what sampling alone gives,
    sum over C of sqrt(P(C) / (2 pi K)) on average for draws that are independent."""
    game = make(batch=2, players=players)
    budget, bits = 10_000, 2 ** torch.arange(players)
    proposal = Annealed(game, torch.full((2,), 0.25, dtype=torch.double))
    coalitions = proposal.draw(game, budget, torch.tensor(3), paired=True, shared=False)
    every = (torch.arange(2**players)[:, None] >> torch.arange(players) & 1).bool()
    exact = (game(every) / 0.25).softmax(-1)
    weight = proposal.log_weight.softmax(-1)
    estimated = torch.zeros_like(exact).scatter_add(1, (coalitions * bits).sum(-1), weight)
    distance = (estimated - exact).abs().sum(-1) / 2
    assert (distance < 2 * (exact / (2 * torch.pi * budget)).sqrt().sum(-1)).all()


def test_weights_are_proper():
    """Their mean is Z / 2^n, without bias even for groups of GROUP: 4 standard errors over 4,000 groups."""
    game = learnt(batch=1)
    proposal = Annealed(game, torch.full((1,), 0.15, dtype=torch.double))
    proposal.draw(game, 4000 * GROUP, torch.tensor(5), paired=False, shared=False)
    weight = proposal.log_weight.exp().view(-1, GROUP)[:, 0]
    every = (torch.arange(64)[:, None] >> torch.arange(6) & 1).bool()
    exact = (game(every) / 0.15).exp().mean()
    assert float((weight.mean() - exact).abs() / (weight.std() / 4000**0.5)) < 4


def test_padding_never_plays_and_changes_nothing():
    game = learnt(batch=3, players=9)
    arguments = {"temperature": 0.25, "seed": torch.tensor(4), "shared": True, **GIBBS}
    together = estimate_values(game, "BV", 20, **arguments)
    alone = estimate_values(SumGame(game.features[1], game.readout), "BV", 20, **arguments)
    torch.testing.assert_close(alone.values, together.values[1])
    torch.testing.assert_close(alone.ess, together.ess[1])
    columns = torch.tensor([1, 2, 4, 5, 6, 8, 9, 11, 12])  # padding before, between and after
    padded = torch.randn(3, 14, game.features.shape[2], dtype=torch.double)
    padded[:, columns] = game.features
    mask = torch.zeros(3, 14, dtype=torch.bool)
    mask[:, columns] = True
    wide = estimate_values(SumGame(padded, game.readout, mask), "BV", 20, **arguments)
    torch.testing.assert_close(wide.values[:, columns], together.values)
    assert not wide.values[~mask].any()
    temperature = torch.full((3,), 0.25, dtype=torch.double)
    proposal = Annealed(SumGame(padded, game.readout, mask), temperature)
    assert not (proposal.draw(proposal.game, 20, torch.tensor(4), paired=False, shared=False) & ~mask[:, None]).any()


def test_players_in_another_order():
    """Where the game has an order of its own."""
    values, order = torch.randn(2, 7, 4, dtype=torch.double), torch.randperm(7)
    arguments = {"temperature": 0.5, "seed": torch.tensor(4), "shared": True, **GIBBS}
    moved = estimate_values(NormGame(values[:, order]), "SV", 12, **arguments).values
    torch.testing.assert_close(moved, estimate_values(NormGame(values), "SV", 12, **arguments).values[:, order])


def test_shared_draws_are_the_same_and_others_are_not():
    game = learnt(batch=1)
    twice = SumGame(game.features.expand(2, -1, -1), game.readout)
    temperature = torch.full((2,), 0.25, dtype=torch.double)
    one, other = Annealed(twice, temperature).draw(twice, 24, torch.tensor(0), paired=False, shared=True)
    assert torch.equal(one, other)
    one, other = Annealed(twice, temperature).draw(twice, 24, torch.tensor(0), paired=False, shared=False)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("budget", [2, 3, 13])
def test_odd_and_small_budgets(budget):
    """Without bias at any: the mean over 2,000 estimates of Z within 4 standard errors."""
    game = learnt(batch=1)
    many = SumGame(game.features.expand(2000, -1, -1), game.readout)
    proposal = Annealed(many, torch.full((2000,), 0.25, dtype=torch.double))
    coalitions = proposal.draw(many, budget, torch.tensor(6), paired=True, shared=False)
    assert coalitions.shape == (2000, budget, 6)
    total = proposal.log_weight.exp()
    every = (torch.arange(64)[:, None] >> torch.arange(6) & 1).bool()
    weight = (game(every) / 0.25).exp().mean(), total.mean(-1)
    assert float((weight[1].mean() - weight[0]).abs() / (weight[1].std() / 2000**0.5)) < 4
    inside = (total[..., None] * coalitions).mean(1)
    exact = ((game(every) / 0.25).exp().view(-1, 1) * every).mean(0)
    assert ((inside.mean(0) - exact).abs() < 4 * inside.std(0) / 2000**0.5).all()


@pytest.mark.parametrize("make", GAMES)
def test_coverage(make):
    """160 estimates from 20 groups, 20 games: 95% intervals hold the exact value in 90 to 99%, over all players.

    These are two standard errors or more even if all players erred together: sqrt(0.95 * 0.05 / 160) is 0.017.
    """
    game = make(batch=20, players=6, seed=3)
    exact = exact_values(game, "BV", "gibbs", 0.25)
    inside = []
    for seed in range(8):
        arguments = {"temperature": 0.25, "seed": torch.tensor(1000 + seed), **GIBBS}
        low, high = estimate_values(game, "BV", 20 * GROUP, **arguments).interval()
        inside.append((low <= exact) & (exact <= high))
    assert 0.9 < float(torch.stack(inside).double().mean()) < 0.99


@pytest.fixture(scope="module")
def strong():
    """8 games of 25 players that interact strongly, v in [0, 1]."""
    return learnt(batch=8, players=25, width=24, sharp=6.0)


def test_effective_sample_size(strong):
    """ESS / K at K = 32: in one group at least RESAMPLE_BELOW for every player, by construction; in groups of GROUP,
    whose weights differ, 0.85 for every game and 0.95 on average, mean over players.
    """
    part = {}
    for name in ("uniform", "tilted", "annealed"):
        arguments = {"weighting": "gibbs", "temperature": 0.25, "proposal": name, "seed": torch.tensor(1)}
        part[name] = estimate_values(strong, "BV", 32, **arguments).ess.mean(-1) / 32
    assert float(part["annealed"].min()) > 0.85
    assert float(part["annealed"].mean()) > 0.95
    assert float(part["annealed"].mean()) > max(float(part[name].mean()) for name in ("uniform", "tilted")) + 0.2
    one = make_proposal("annealed", strong, "BV", torch.full((8,), 0.25, dtype=torch.double), group=32)
    estimate = estimate_values(
        strong, "BV", 32, weighting="gibbs", temperature=0.25, proposal=one, seed=torch.tensor(1)
    )
    assert float(estimate.ess.min()) > RESAMPLE_BELOW * 32 * (1 - 1e-9)


def test_effective_sample_size_is_what_the_error_says(strong):
    """Mean squared error over 64 repetitions: at most that of 0.8 K draws from the target, summed over players."""
    one = SumGame(strong.features[:1].expand(64, -1, -1), strong.readout)
    fair = torch.rand(1, 20_000, 25, generator=torch.Generator().manual_seed(0)) < 0.5
    delta, without = SumGame(strong.features[:1], strong.readout).marginals(fair)
    weight = (without / 0.25).softmax(1)
    mean = (weight * delta).sum(1)
    variance = (weight * (delta - mean[:, None]).square()).sum(1)
    estimate = estimate_values(one, "BV", 32, temperature=0.25, seed=torch.tensor(9), errors=False, **GIBBS)
    error = (estimate.values - mean).square().mean(0)
    assert float(variance.sum() / 32 / error.sum()) > 0.8


def test_gradients_estimate_the_gradient():
    """Bound: 5 standard errors, plus 0.01 for the ratio estimator's bias of order 1/K."""
    values = (0.5 * torch.randn(5, 3, dtype=torch.float64)).requires_grad_()
    exact = exact_values(NormGame(values), "BV", "gibbs", 0.5)
    (expected,) = torch.autograd.grad(exact.square().sum(), values)
    many = values.detach().expand(64, -1, -1).clone().requires_grad_()
    estimate = estimate_values(NormGame(many), "BV", 400, temperature=0.5, seed=torch.tensor(1), **GIBBS)
    (gradient,) = torch.autograd.grad(estimate.values.square().sum(), many)
    assert ((gradient.mean(0) - expected).abs() < 5 * gradient.std(0) / 8 + 0.01).all()


def test_a_proposal_serves_several_estimates():
    game = learnt()
    proposal = make_proposal("annealed", game, "BV", torch.full((3,), 0.25, dtype=torch.double))
    arguments = {"weighting": "gibbs", "temperature": 0.25}
    for index, seed in (("BV", 1), ("BII", 1), ("SV", 2), ("BV", 1)):
        again = estimate_values(game, index, 20, proposal=proposal, seed=torch.tensor(seed), **arguments)
        fresh = estimate_values(game, index, 20, proposal="annealed", seed=torch.tensor(seed), **arguments)
        assert torch.equal(again.values, fresh.values)


def test_low_rank():
    """Mild tilt, 60 players: within 10% of the dense estimate at the same budget."""
    values = torch.randn(1, 60, 16) + 1
    game = NormGame(values, scale=float(1 / values.norm(dim=-1).sum()))
    arguments = {"seed": torch.tensor(1), "shared": True, **GIBBS}
    factors, weights = estimate_low_rank(game, 200, temperature=torch.full((1,), 0.25), **arguments)
    low = (factors * weights[:, None]) @ factors.mT
    low = low - torch.diag_embed(low.diagonal(dim1=-2, dim2=-1))
    dense = estimate_values(game, "BII", 200, temperature=0.25, **arguments).values
    assert float((low - dense).norm() / dense.norm()) < 0.1


def test_weights_by_which_missed_peaks_are_judged(monkeypatch):
    """Mean weights are 2^-n times the sums of exp(v / gamma), over all coalitions and over those without a player.

    Bound: 5%, with 4,000 draws.
    """
    handed = {}
    monkeypatch.setattr("spinformer.games.annealed.complete", lambda *values: handed.update(values=values))
    game, gamma = table(batch=1, players=5), torch.tensor([0.5], dtype=torch.double)
    proposal = Annealed(game, gamma)
    proposal.draw(game, 4000, torch.tensor(0), paired=False, shared=False)
    proposal.complete(torch.zeros(1, 1, 5, dtype=torch.bool))
    _, _, log_weight, without_one = handed["values"]
    every = (torch.arange(32)[:, None] >> torch.arange(5) & 1).bool()
    masses = (game.evaluate(every[None])[0] / gamma).exp() / 2**5
    assert float(log_weight.exp().mean()) == pytest.approx(float(masses.sum()), rel=0.05)
    for player in range(5):
        expected = float(masses[~every[:, player]].sum())
        assert float(without_one[0, :, player].exp().mean()) == pytest.approx(expected, rel=0.05)
