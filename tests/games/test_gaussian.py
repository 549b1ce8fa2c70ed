"""The Gaussian process on coalitions against brute force: every covariance, value and variance in closed form."""

import math

import pytest
import torch

from spinformer.games import INDICES, Index, TableGame, exact_values, gaussian
from spinformer.games.designs import all_coalitions, paired_design
from spinformer.games.gaussian import CONSTANT, Quadrature, _rule, index_variances, order_ratios

NAMES = ("SV", "BV", "SII", "BII")
RATIOS = torch.tensor([0.05, 0.3, 0.12, 0.6, 0.2], dtype=torch.float64)


def functionals(name: str, players: int) -> torch.Tensor:
    """The index as a matrix: (n, 2^n), or (pairs, 2^n)."""
    tables = torch.eye(2**players, dtype=torch.float64)
    values = exact_values(TableGame(tables), name)
    if values.dim() == 3:
        first, second = torch.triu_indices(players, players, 1)
        values = values[:, first, second]
    return values.T


def kernel(ratios: torch.Tensor) -> torch.Tensor:
    """k of all coalitions, factor by factor."""
    spins = 2 * all_coalitions(len(ratios)).double() - 1
    factors = (1 + ratios * spins[:, None] * spins) / (1 + ratios)
    return CONSTANT + factors.prod(-1)


@pytest.mark.parametrize("name", NAMES)
def test_covariances_are_those_of_the_functionals(name: str) -> None:
    matrix, everything = functionals(name, 5), kernel(RATIOS)
    asked = paired_design(5, 12, torch.tensor(1))
    position = (asked * 2 ** torch.arange(5)).sum(1)
    quadrature = Quadrature(asked, RATIOS)
    expected = matrix @ everything
    torch.testing.assert_close(quadrature.cross_covariance(name), expected[:, position], rtol=1e-9, atol=1e-10)
    variances = (expected * matrix).sum(1)
    torch.testing.assert_close(index_variances(name, RATIOS), variances, rtol=1e-9, atol=1e-10)
    rest = expected - expected[:, position] @ torch.linalg.solve(
        everything[position][:, position], everything[position]
    )
    left = (rest * matrix).sum(1).clamp_min(0).sqrt()
    deviations = quadrature.deviations(name)
    if deviations.dim() == 2:
        first, second = torch.triu_indices(5, 5, 1)
        deviations = deviations[first, second]
    torch.testing.assert_close(deviations, left, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_all_coalitions_give_exact_values(name: str) -> None:
    table = torch.rand(3, 2**5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    quadrature = Quadrature(all_coalitions(5), RATIOS)
    values = quadrature.values(name, quadrature.coefficients(table))
    torch.testing.assert_close(values, exact_values(TableGame(table), name), rtol=0, atol=1e-6)
    assert quadrature.deviations(name).max() < 1e-3


def test_a_game_of_the_prior_is_covered_as_promised() -> None:
    """400 games drawn from the prior, 24 of 256 coalitions asked: 95% intervals hold 95% (bound: 3 standard errors)."""
    ratios = order_ratios(8)
    everything = all_coalitions(8)
    whole = Quadrature(everything, ratios)
    noise = torch.randn(400, 256, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    games = noise @ whole.factor.T
    asked = paired_design(8, 24, torch.tensor(0))
    quadrature = Quadrature(asked, ratios)
    values = games[:, (asked * 2 ** torch.arange(8)).sum(1)]
    coefficients = quadrature.coefficients(values)
    for name in NAMES:
        error = quadrature.values(name, coefficients) - exact_values(TableGame(games), name)
        inside = (error.abs() <= 1.96 * quadrature.deviations(name) + 1e-9).double()
        inside = inside.flatten(1) if name in ("SV", "BV") else inside[:, *torch.triu_indices(8, 8, 1)]
        spread = float(inside.mean(1).std()) / 400**0.5
        assert abs(float(inside.mean()) - 0.95) < 3 * spread, name
    amplitude = quadrature.amplitude(values, coefficients) / len(asked)
    assert abs(float(amplitude.mean()) - 1) < 3 * float(amplitude.std()) / 400**0.5


def test_predictions_meet_what_was_asked() -> None:
    asked = paired_design(6, 20, torch.tensor(0))
    values = torch.rand(2, 20, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    quadrature = Quadrature(asked, order_ratios(6))
    coefficients = quadrature.coefficients(values)
    torch.testing.assert_close(quadrature.predict(asked, coefficients), values, rtol=0, atol=1e-6)


def test_an_index_without_coins_has_no_closed_form() -> None:
    INDICES.register(Index("odd", 1, "odd value", lambda others, size: size.double()))
    try:
        with pytest.raises(ValueError, match="mean over coins"):
            index_variances("odd", RATIOS)
    finally:
        INDICES.unregister("odd")


@pytest.mark.parametrize(("players", "order"), [(5, 1.0), (9, 1.5), (30, 2.5)])
def test_ratios_give_interactions_their_mean_order(players: int, order: float) -> None:
    """An interaction of s players has the variance r^s, and there are binom(n, s) of them."""
    ratio = float(order_ratios(players, order)[0])
    variance = [math.comb(players, size) * ratio**size for size in range(players + 1)]
    mean = sum(size * part for size, part in enumerate(variance)) / sum(variance)
    assert mean == pytest.approx(order)
    weights = torch.linspace(0.5, 1.5, players)
    torch.testing.assert_close(order_ratios(players, order, weights), ratio * weights.double())


@pytest.mark.parametrize("players", [1, 6, 13])
def test_rules_have_no_more_nodes_than_they_need(players: int) -> None:
    """x^k for all k below n, exactly; a mean over fair coins is one node."""
    rule = _rule(INDICES["SV"], torch.full((players,), 0.9))
    assert len(rule) <= players // 2 + 1
    for power in range(players):
        expected = (1 + (-1) ** power) / 2 / (power + 1)
        assert sum(weight * x**power for x, weight in rule) == pytest.approx(expected, abs=1e-12)
    assert [(x, pytest.approx(weight)) for x, weight in _rule(INDICES["BV"], torch.full((players,), 0.9))] == [
        (0.0, 1.0)
    ]


@pytest.mark.parametrize("order", [1.5, 3.0])
@pytest.mark.parametrize("players", [30, 80, 300])
def test_few_nodes_are_enough_for_many_players(players, order, monkeypatch):
    """As many nodes as a polynomial of degree n needs change nothing beyond rounding, however uneven players are."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(players, generator=generator).pow(8)
    ratios = order_ratios(players, order, weights / weights.mean())
    coalitions = torch.rand(40, players, generator=generator) < 0.2 + 0.6 * torch.rand(40, 1, generator=generator)
    values = torch.rand(1, 40, generator=generator, dtype=torch.double)
    found = []
    for nodes in (gaussian.NODES, ((float("inf"), players),)):
        monkeypatch.setattr(gaussian, "NODES", nodes)
        quadrature = Quadrature(coalitions, ratios)
        coefficients = quadrature.coefficients(values)
        found.append([quadrature.values(name, coefficients) for name in ("SV", "SII")])
    for few, many in zip(*found, strict=True):
        torch.testing.assert_close(few, many, rtol=1e-9, atol=1e-12)
