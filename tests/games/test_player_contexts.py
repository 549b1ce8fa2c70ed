"""Contexts that the annealed proposal draws for each player alone: their weights and their error."""

import pytest
import torch

from spinformer.games import SumGame, estimate_values, exact_values, make_proposal
from spinformer.games.annealed import RESAMPLE_BELOW, Annealed
from tests.games.test_annealed import GIBBS, MASK, learnt


@pytest.mark.parametrize("group", [5, 32])
def test_weights_are_proper(group):
    """Means of w Delta_i(T), and of w, without bias for any number of draws: the sums of both over all T, weighted by
    exp(v(T) / gamma), within 4 standard errors over 1,000 repetitions of 32 draws, for every player."""
    game = learnt(batch=1, seed=0, sharp=10.0)
    many, temperature = SumGame(game.features.expand(1000, -1, -1), game.readout), torch.full((1000,), 0.25).double()
    proposal = Annealed(many, temperature, group)
    coalitions = proposal.draw(many, 32, torch.tensor(5), paired=True, shared=False)
    delta, without = many.marginals(coalitions)
    shared = without / 0.25 - proposal.log_without_one(coalitions, delta, without)
    uneven = (1 / shared.softmax(1).square().sum(1) < RESAMPLE_BELOW * 32).double().mean(0)
    assert ((uneven > 0.2) & (uneven < 0.8)).any()  # players who are resampled now and then
    delta, log_weight = proposal.player_contexts(delta, shared, temperature)
    every = (torch.arange(64)[:, None] >> torch.arange(6) & 1).bool()
    gain, out = (part.squeeze(0) for part in game.marginals(every[None]))
    weight = (out / 0.25).exp() * ~every  # each T once
    for drawn, exact in ((log_weight.exp() * delta, weight * gain), (log_weight.exp(), weight)):
        mean = drawn.mean(1)  # (1000, n)
        assert ((mean.mean(0) - exact.sum(0)).abs() < 4 * mean.std(0) / 1000**0.5).all()


def test_a_few_players_at_a_time_get_the_same(monkeypatch):
    arguments = {"temperature": 0.25, "seed": torch.tensor(4), "shared": True, **GIBBS}
    together = estimate_values(learnt(mask=MASK), "BV", 20, **arguments)
    monkeypatch.setattr("spinformer.games.annealed.MAX_ELEMENTS", 3 * 20 * 6 * 2)
    parts = estimate_values(learnt(mask=MASK), "BV", 20, **arguments)
    torch.testing.assert_close(parts.values, together.values)
    torch.testing.assert_close(parts.ess, together.ess)


def test_contexts_are_not_copies():
    """1,000 repetitions of K = 32 in one group: the mean squared error is at most that of K draws from the target,
    summed over players, and at most that of 0.85 K for each."""
    game = learnt(batch=1, players=10, sharp=12.0, seed=2)
    every = (torch.arange(1024)[:, None] >> torch.arange(10) & 1).bool()
    delta, without = (part.squeeze(0) for part in game.marginals(every[None]))
    probability = (without / 0.25).softmax(0)
    mean = (probability * delta).sum(0)
    variance = (probability * (delta - mean).square()).sum(0)
    many = SumGame(game.features.expand(1000, -1, -1), game.readout)
    proposal = make_proposal("annealed", many, "BV", torch.full((1000,), 0.25, dtype=torch.double), group=32)
    arguments = {"weighting": "gibbs", "temperature": 0.25, "seed": torch.tensor(9), "errors": False}
    error = (estimate_values(many, "BV", 32, proposal=proposal, **arguments).values - mean).square().mean(0)
    assert float(variance.sum() / 32 / error.sum()) > 1
    assert float((variance / 32 / error).min()) > 0.85


def test_they_do_not_depend_on_the_batch():
    """In one group, as explanations draw them: those of a game alone, and of one among longer ones."""
    game = learnt(mask=MASK)
    alone = SumGame(game.features[1][MASK[1]], game.readout)
    estimates = []
    for one in (game, alone):
        temperature = torch.full((one.batch,), 0.25, dtype=torch.double)
        proposal = make_proposal("annealed", one, "BV", temperature, group=32)
        arguments = {"weighting": "gibbs", "temperature": 0.25, "seed": torch.tensor(3), "shared": True}
        estimates.append(estimate_values(one, "BV", 32, proposal=proposal, **arguments))
    torch.testing.assert_close(estimates[0].values[1][MASK[1]], estimates[1].values)
    torch.testing.assert_close(estimates[0].ess[1][MASK[1]], estimates[1].ess)


def test_gradients_are_those_of_the_exact_values():
    """With respect to the temperature and to the game, within 4 standard errors over 40 games that are the same."""

    def gradients(values, temperature, features):
        slopes = torch.autograd.grad(values.sum(), [temperature, features])
        return torch.stack([slope.flatten(1).sum(1) for slope in slopes], 1)

    def game(count):
        made = learnt(batch=1, seed=3)
        features = made.features.expand(count, -1, -1).clone().requires_grad_()
        temperature = torch.full((count, 1), 0.5, dtype=made.dtype, requires_grad=True)
        return SumGame(features, made.readout), features, temperature

    one, features, temperature = game(1)
    values = exact_values(one, "BV", weighting="gibbs", temperature=temperature[:, 0])
    (exact,) = gradients(values, temperature, features)
    many, features, temperature = game(40)
    drawn = estimate_values(many, "BV", 400, temperature=temperature[:, 0], seed=torch.tensor(0), **GIBBS)
    slopes = gradients(drawn.values, temperature, features)
    assert (exact.abs() > 0.05).all()
    assert ((slopes.mean(0) - exact).abs() < 4 * slopes.std(0) / 40**0.5).all(), (slopes.mean(0), exact)
