"""Laws of estimates: invariances, exact oracles within the stated errors, and the forms that must agree."""

import pytest
import torch
from hypothesis import assume
from hypothesis import strategies as st

from spinformer.games import (
    INDICES,
    MIN_ESS,
    Estimate,
    GameValues,
    NormGame,
    NormValues,
    SumGame,
    TableGame,
    estimate_all,
    estimate_low_rank,
    estimate_norm_values,
    estimate_values,
    exact_values,
    low_rank_from_sums,
    make_proposal,
)
from tests.properties.cases import assert_near, generator, law, masks, numbers, seeds
from tests.properties.test_games import activations, bits, names, network, weightings

proposals = st.sampled_from(["uniform", "tilted", "annealed"])
estimators = st.sampled_from(["auto", "plain", "paired"])
kinds = st.sampled_from(["normal", "whole", "sparse", "twins"])


def moved(values: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The players in another order, among padding of other vectors; the mask, and the column of each player."""
    draw = generator(seed)
    columns = len(values) + int(torch.randint(4, (), generator=draw))
    place = torch.randperm(columns, generator=draw)[: len(values)]
    padded = 3 * torch.randn(columns, values.shape[1], generator=draw, dtype=values.dtype)
    padded[place] = values
    mask = torch.zeros(columns, dtype=torch.bool)
    mask[place] = True
    return padded, mask, place


def chosen(part: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    return part[place] if part.dim() == 1 else part[place][:, place]


@law(
    "games.estimate_values",
    "games.NormGame",
    "games.SumGame",
    share=20,
    n=st.integers(1, 6),
    index=names,
    weighting=weightings,
    proposal=proposals,
    estimator=estimators,
    kind=kinds,
    sums=st.booleans(),
    seed=seeds,
)
def test_order_and_padding_change_nothing(n, index, weighting, proposal, estimator, kind, sums, seed):
    values = numbers(kind, seed, n, 3)
    padded, mask, place = moved(values, seed)
    options = {"weighting": weighting, "proposal": proposal, "estimator": estimator, "temperature": 0.7}
    options |= {"seed": torch.tensor(seed), "shared": True}
    if sums:
        games = SumGame(values, network(seed, 3)), SumGame(padded, network(seed, 3), mask)
    else:
        games = NormGame(values), NormGame(padded, mask)
    here, there = (estimate_values(game, index, 12, **options) for game in games)
    assert_near(chosen(there.values, place), here.values, 1e-8, size=1)
    assert_near(chosen(there.stderr, place), here.stderr, 1e-6, size=1)
    outside = torch.ones(len(mask), dtype=torch.bool)
    outside[place] = False
    assert not there.values[outside].any()


@law(
    "games.estimate_values",
    "games.Estimate",
    "games.MIN_ESS",
    share=15,
    n=st.integers(1, 5),
    index=names,
    weighting=weightings,
    proposal=proposals,
    estimator=estimators,
    budget=st.integers(2, 40),
    seed=seeds,
)
def test_the_same_seed_gives_the_same_numbers(n, index, weighting, proposal, estimator, budget, seed):
    """And they are finite, of the right shape, with an effective sample size of at most the budget."""
    game = NormGame(numbers("normal", seed, 2, n, 3), masks(seed, 2, n))
    options = {"weighting": weighting, "proposal": proposal, "estimator": estimator, "temperature": 0.9}
    one = estimate_values(game, index, budget, **options, seed=seed)
    other = estimate_values(game, index, budget, **options, seed=torch.tensor(seed))
    drawn = estimate_values(game, index, budget, **options, generator=generator(seed))
    again = estimate_values(game, index, budget, **options, generator=generator(seed))
    for first, second in ((one, other), (drawn, again)):
        assert torch.equal(first.values, second.values)
        assert torch.equal(first.ess, second.ess)
    assert one.values.shape == (2, *[n] * INDICES[index].order) == one.trusted.shape
    assert bool(torch.isfinite(one.values).all())
    assert bool((one.stderr >= 0).all())
    assert bool((one.ess <= budget * (1 + 1e-6)).all())
    assert not bool((one.trusted & (one.ess < MIN_ESS)).any())
    low, high = one.interval(2.0)
    assert_near((low + high)[torch.isfinite(low + high)], 2 * one.values[torch.isfinite(low + high)], 1e-9)
    assert f"from {budget} coalitions" in str(one)


@law(
    "games.estimate_values",
    "games.exact_values",
    share=20,
    n=st.integers(2, 6),
    index=names,
    weighting=weightings,
    proposal=proposals,
    estimator=estimators,
    kind=kinds,
    seed=seeds,
)
def test_trusted_estimates_are_within_their_errors(n, index, weighting, proposal, estimator, kind, seed):
    """Of the exact value: none is off by more than 8 standard errors, of 256 coalitions."""
    game = TableGame(numbers("normal", seed, 2**n)) if seed % 2 else NormGame(numbers(kind, seed, n, 3))
    options = {"weighting": weighting, "proposal": proposal, "estimator": estimator, "temperature": 1.0}
    found = estimate_values(game, index, 256, **options, seed=seed)
    exact = exact_values(game, index, weighting, 1.0)
    apart = (found.values - exact).abs()
    size = game(bits(n)).abs().max().clamp_min(1e-9)  # differences of roots are exact to half of the digits
    wrong = found.trusted & (apart > 8 * found.stderr + 1e-6 * size + (weighting == "gibbs") * 0.02 * size)
    assert not bool(wrong.any()), f"off by {(apart / found.stderr.clamp_min(1e-300))[wrong].tolist()} standard errors"


@law(
    "games.estimate_values",
    "games.SumGame",
    share=12,
    n=st.integers(1, 7),
    index=names,
    weighting=weightings,
    proposal=st.sampled_from(["uniform", "annealed"]),
    estimator=estimators,
    kind=kinds,
    seed=seeds,
)
def test_linear_games_have_no_error(n, index, weighting, proposal, estimator, kind, seed):
    """Every context gives a player the same: its estimate is exact, and no pair interacts."""
    features = numbers(kind, seed, n, 1)
    options = {"weighting": weighting, "proposal": proposal, "estimator": estimator, "temperature": 1.0}
    found = estimate_values(SumGame(features, lambda sums: sums[..., 0]), index, 8, **options, seed=seed)
    expected = features[:, 0] if found.values.dim() == 1 else torch.zeros(n, n, dtype=torch.float64)
    assert_near(found.values, expected, 1e-12, size=10)
    known = torch.isfinite(found.stderr)  # of a single block of draws it is not known
    assert_near(found.stderr[known], torch.zeros_like(found.stderr[known]), 1e-12, size=10)


@law(
    "games.make_proposal",
    "games.estimate_values",
    share=10,
    n=st.integers(1, 6),
    index=names,
    weighting=weightings,
    proposal=proposals,
    seed=seeds,
)
def test_a_proposal_made_before_gives_what_its_name_gives(n, index, weighting, proposal, seed):
    game = NormGame(numbers("normal", seed, 2, n, 3), masks(seed, 2, n))
    gamma = torch.tensor([0.6, 1.3], dtype=torch.float64)
    made = make_proposal(proposal, game, index, gamma)
    options = {"weighting": weighting, "temperature": gamma, "estimator": "paired", "seed": seed}
    one = estimate_values(game, index, 16, proposal=made, **options)
    other = estimate_values(game, index, 16, proposal=proposal, **options)
    assert_near(one.values, other.values, 1e-12)
    with pytest.raises(ValueError, match=rf"proposal must be for 2 games of {n + 1} players; it is for 2 of {n}"):
        estimate_values(NormGame(torch.ones(2, n + 1, 3)), index, 16, proposal=made, **options)


@law(
    "games.estimate_all",
    "games.GameValues",
    "games.exact_values",
    share=15,
    n=st.integers(1, 6),
    batch=st.integers(1, 3),
    table=st.booleans(),
    kind=kinds,
    seed=seeds,
)
def test_estimate_all_enumerates_small_games(n, batch, table, kind, seed):
    """Exact values with no error; and a row alone is the row of the batch."""
    mask = None if table else masks(seed, batch, n)
    game = (
        TableGame(numbers("normal", seed, batch, 2**n)) if table else NormGame(numbers(kind, seed, batch, n, 3), mask)
    )
    found = estimate_all(game, 64, seed=seed)
    assert isinstance(found, GameValues)
    for name, estimate in found.by_index.items():
        assert_near(estimate.values, exact_values(game, name), 1e-9, name, size=1)
        assert not estimate.stderr.any()
    assert_near(found.empty, game(torch.zeros(1, n, dtype=torch.bool)).flatten(), 1e-9)
    active = found.activity
    assert_near(
        active.square(), found.shapley.values.square() + found.shapley_interactions.values.square().sum(-1) / 2, 1e-9
    )
    if mask is None:
        row = found.row(batch - 1, n)
        assert torch.equal(row.shapley.values[0], found.shapley.values[batch - 1])
        assert torch.equal(row.shapley_interactions.values[0], found.shapley_interactions.values[batch - 1])
    wider = found.widen({name: torch.ones_like(estimate.values) for name, estimate in found.by_index.items()})
    assert_near(wider.banzhaf.stderr, (found.banzhaf.stderr.square() + 1).sqrt(), 1e-9)


@law("games.estimate_all", share=4, n=st.integers(7, 11), budget=st.integers(24, 90), kind=kinds, seed=seeds)
def test_estimate_all_adds_up_whatever_it_asks(n, budget, kind, seed):
    """Shapley values add up to v(N) - v(nothing), and a game's numbers do not depend on its batch."""
    values = numbers(kind, seed, 2, n, 3)
    assume(budget < 2**n)
    both = estimate_all(NormGame(values), budget, seed=seed % 5)
    ends = NormGame(values)(torch.tensor([[False], [True]]).expand(2, n))
    assert_near(both.shapley.values.sum(-1), ends[:, 1] - ends[:, 0], 1e-9, size=1)
    alone = estimate_all(NormGame(values[:1]), budget, seed=seed % 5)
    for name, estimate in alone.by_index.items():
        assert_near(estimate.values[0], both.by_index[name].values[0], 1e-6, name, size=1)
        assert bool((estimate.stderr >= 0).all())


@law(
    "games.estimate_norm_values",
    "games.NormValues",
    "games.estimate_values",
    share=12,
    n=st.integers(1, 7),
    budget=st.integers(2, 30),
    activation=activations,
    shared=st.booleans(),
    kind=kinds,
    seed=seeds,
)
def test_norm_values_are_those_of_estimate_values(n, budget, activation, shared, kind, seed):
    game = NormGame(numbers(kind, seed, 2, n, 3), masks(seed, 2, n), activation)
    found = estimate_norm_values(game, budget, seed=seed, shared=shared)
    assert isinstance(found, NormValues)
    for place, name in enumerate(("SV", "BV")):
        expected = estimate_values(game, name, budget, seed=seed + place, shared=shared, errors=False)
        assert isinstance(expected, Estimate)
        assert not expected.trusted.any()  # without errors nothing is
        assert_near(found.values[:, place], expected.values, 1e-9, size=1)


@law(
    "games.estimate_low_rank",
    "games.low_rank_from_sums",
    share=12,
    n=st.integers(2, 7),
    budget=st.integers(2, 12),
    activation=activations,
    weighting=weightings,
    proposal=proposals,
    kind=kinds,
    seed=seeds,
)
def test_low_rank_interactions(n, budget, activation, weighting, proposal, kind, seed):
    """Of d + K factors, 0 at padding; players that trade places trade rows; equal weights are those of the sums."""
    values = numbers(kind, seed, n, 3)
    padded, mask, place = moved(values, seed)
    options = {"weighting": weighting, "temperature": 0.9, "proposal": proposal, "seed": seed, "shared": True}
    here = NormGame(values[None], None, activation)
    factors, weights = estimate_low_rank(here, budget, **options)
    assert factors.shape == (1, n, 3 + budget)
    assert weights.shape == (1, 3 + budget)
    there, others = estimate_low_rank(NormGame(padded[None], mask[None], activation), budget, **options)
    matrix, moved_matrix = ((u * w[:, None]) @ u.mT for u, w in ((factors, weights), (there, others)))
    off = 1 - torch.eye(n, dtype=torch.float64)
    assert_near(moved_matrix[0][place][:, place] * off, matrix[0] * off, 1e-8, size=1)
    outside = torch.ones(len(mask), dtype=torch.bool)
    outside[place] = False
    assert not there[0][outside].any()
    coalitions = bits(n)[None]
    flat = low_rank_from_sums(here, here.sums(coalitions), torch.zeros(1, 2**n))
    plain = low_rank_from_sums(here, here.sums(coalitions))
    for one, other in zip(flat, plain, strict=True):
        assert_near(one, other, 1e-9)
