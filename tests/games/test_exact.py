"""Exact values: against shapiq, against loops written from the definitions, and by the axioms."""

import itertools
import math
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from research.benchmarks import exact as against_shapiq
from spinformer.games import NormGame, TableGame, exact_values
from spinformer.games.indices import INDICES

tables = st.integers(3, 6).flatmap(
    lambda n: st.lists(st.floats(-10, 10), min_size=2**n, max_size=2**n).map(lambda v: torch.tensor(v).double())
)


def by_definition(table: torch.Tensor, index: str, weighting: str, temperature: float) -> torch.Tensor:
    n = (len(table) - 1).bit_length()
    v = table.tolist()
    value = lambda members: v[sum(2**i for i in members)]  # noqa: E731
    pairwise = index in ("SII", "BII")
    result = torch.zeros(*[n] * (1 + pairwise), dtype=torch.float64)
    for around in itertools.permutations(range(n), 2) if pairwise else ((i,) for i in range(n)):
        others = [k for k in range(n) if k not in around]
        m = len(others)
        weights, deltas = [], []
        for size in range(m + 1):
            for context in itertools.combinations(others, size):
                deltas.append(
                    sum(
                        (-1) ** (len(around) - len(extra)) * value((*context, *extra))
                        for r in range(len(around) + 1)
                        for extra in itertools.combinations(around, r)
                    )
                )
                if weighting == "gibbs":
                    weights.append(math.exp(value(context) / temperature))
                else:
                    weights.append(1 / ((m + 1) * math.comb(m, size)) if index in ("SV", "SII") else 2.0**-m)
        result[around] = sum(w * d for w, d in zip(weights, deltas, strict=True)) / sum(weights)
    return result


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("weighting", ["uniform", "gibbs"])
@pytest.mark.parametrize("players", [1, 2, 3, 5])
def test_equals_the_definitions(index, weighting, players, generator):
    table = torch.rand(2**players, generator=generator, dtype=torch.float64)
    values = exact_values(TableGame(table), index, weighting, 0.5)
    torch.testing.assert_close(values, by_definition(table, index, weighting, 0.5), rtol=0, atol=1e-12)


@pytest.mark.slow
def test_equals_shapiq_on_random_games(monkeypatch):
    """Two games of each number of players from 3 to 10 (the bench: 200 in all)."""
    monkeypatch.setattr(against_shapiq, "GAMES", 16)
    outcome = against_shapiq.run(seed=1)
    assert outcome["games"] == 16
    assert max(outcome["worst"].values()) <= 1e-6


@given(tables)
@settings(max_examples=50, deadline=None)
def test_efficiency(table):
    total = exact_values(TableGame(table), "SV").sum()
    assert float(total) == pytest.approx(float(table[-1] - table[0]), abs=1e-9)


@given(tables, st.data())
@settings(max_examples=50, deadline=None)
def test_symmetry(table, data):
    n = (len(table) - 1).bit_length()
    i, j = data.draw(st.permutations(range(n)))[:2]
    position = torch.arange(2**n)
    swapped = position & ~(2**i) & ~(2**j) | (position >> i & 1) << j | (position >> j & 1) << i
    symmetric = table + table[swapped]
    for index in INDICES:
        value = exact_values(TableGame(symmetric), index)
        if index in ("SV", "BV"):
            torch.testing.assert_close(value[i], value[j], rtol=0, atol=1e-9)
        else:
            others = [k for k in range(n) if k not in (i, j)]
            torch.testing.assert_close(value[i, others], value[j, others], rtol=0, atol=1e-9)


@given(tables, st.floats(-5, 5), st.data())
@settings(max_examples=50, deadline=None)
def test_dummy(table, worth, data):
    n = (len(table) - 1).bit_length()
    i = data.draw(st.integers(0, n - 1))
    position = torch.arange(2**n)
    dummy = table[position & ~(2**i)] + worth * (position >> i & 1).double()
    for index in INDICES:
        value = exact_values(TableGame(dummy), index)
        expected = worth if index in ("SV", "BV") else 0.0
        torch.testing.assert_close(value[i], torch.full_like(value[i], expected), rtol=0, atol=1e-9)


@given(tables, st.floats(-3, 3))
@settings(max_examples=50, deadline=None)
def test_linearity(table, factor):
    other = table.flip(0)
    for index in INDICES:
        both = exact_values(TableGame(table + factor * other), index)
        parts = exact_values(TableGame(table), index) + factor * exact_values(TableGame(other), index)
        torch.testing.assert_close(both, parts, rtol=0, atol=1e-8)


def test_gibbs_shapley_is_gibbs_banzhaf(generator):
    game = TableGame(torch.rand(4, 2**5, generator=generator))
    for shapley, banzhaf in (("SV", "BV"), ("SII", "BII")):
        assert torch.equal(exact_values(game, shapley, "gibbs", 0.3), exact_values(game, banzhaf, "gibbs", 0.3))


def test_gibbs_tends_to_uniform_when_hot(generator):
    game = TableGame(torch.rand(2**5, generator=generator, dtype=torch.float64))
    torch.testing.assert_close(exact_values(game, "BV", "gibbs", 1e6), exact_values(game, "BV"), rtol=0, atol=1e-5)


def test_squared_norm_has_closed_values(generator):
    values = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    position = torch.arange(2**6)[:, None] >> torch.arange(6) & 1
    game = TableGame((position.double() @ values).square().sum(-1))
    torch.testing.assert_close(exact_values(game, "SV"), values @ values.sum(0))
    twice = 2 * values @ values.T
    torch.testing.assert_close(exact_values(game, "BII"), twice - twice.diagonal().diag())


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("weighting", ["uniform", "gibbs"])
def test_padding_changes_nothing(index, weighting, generator):
    values = torch.randn(2, 7, 3, generator=generator)
    mask = torch.tensor([[1, 1, 1, 1, 1, 0, 0], [0, 1, 0, 1, 1, 1, 1]]).bool()
    padded = exact_values(NormGame(values, mask), index, weighting, 0.5)
    for row in range(2):
        keep = mask[row]
        alone = exact_values(NormGame(values[row][keep]), index, weighting, 0.5)
        inside = padded[row][keep] if alone.dim() == 1 else padded[row][keep][:, keep]
        torch.testing.assert_close(inside, alone)
        assert float(padded[row][~keep].abs().max()) == 0


def test_refuses_many_players_before_work():
    game = NormGame(torch.randn(25, 3))
    start = time.perf_counter()
    with pytest.raises(ValueError, match="at most 20 players; got 25"):
        exact_values(game, "SV")
    assert time.perf_counter() - start < 1
    mask = torch.arange(25) < 20
    assert exact_values(NormGame(torch.randn(25, 3), mask & (torch.arange(25) < 6)), "SV").shape == (25,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("XY",), "index must be one of 'SV', 'BV', 'SII', 'BII'; got 'XY'"),
        (("SV", "boltzmann"), "weighting must be one of"),
        (("SV", "gibbs", 0.0), "temperature must be finite and positive"),
        (("SV", "gibbs", float("nan")), "temperature must be finite and positive"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        exact_values(TableGame(torch.rand(8)), *arguments)
