"""Laws of games: exact values, the axioms they follow, and the fast forms of differences."""

import itertools

import pytest
import torch
from hypothesis import strategies as st

from spinformer.games import INDICES, MAX_PLAYERS, Game, Index, NormGame, SumGame, TableGame, exact_values
from tests.properties.cases import assert_near, generator, kinds, law, masks, numbers, seeds

players = st.integers(1, 5)
batches = st.integers(1, 3)
names = st.sampled_from(sorted(INDICES))
weightings = st.sampled_from(["uniform", "gibbs"])
types = st.sampled_from([torch.float32, torch.float64])
activations = st.sampled_from(["identity", "relu", "tanh", "log1p"])


def bits(count: int) -> torch.Tensor:
    """All coalitions of so many players in the order of a table, (2**n, n) booleans."""
    return (torch.arange(2**count)[:, None] >> torch.arange(count) & 1).bool()


def temperature(values: torch.Tensor) -> float:
    """One at which Gibbs factors differ and do not overflow."""
    return max(float(values.abs().max()), 1e-30)


def network(seed: int, size: int):
    """A readout of sums that is no polynomial of them."""
    weights = torch.randn(size, 6, generator=generator(seed), dtype=torch.float64)
    return lambda sums: torch.tanh(sums.double() @ weights).sum(-1).to(sums.dtype)


@law("games.TableGame", "games.exact_values", share=20, n=players, batch=batches, kind=kinds, seed=seeds)
def test_shapley_values_add_up(n, batch, kind, seed):
    """To v(N) - v(nothing), for any v of nothing."""
    table = numbers(kind, seed, batch, 2**n)
    total = exact_values(TableGame(table), "SV").sum(-1)
    size = table.abs().amax(1).clamp_min(1e-300)
    assert_near(total / size, (table[:, -1] - table[:, 0]) / size, 1e-9, size=1)


@law(
    "games.exact_values",
    "games.INDICES",
    share=20,
    n=players,
    index=names,
    weighting=weightings,
    kind=kinds,
    seed=seeds,
)
def test_players_that_trade_places_trade_values(n, index, weighting, kind, seed):
    table = numbers(kind, seed, 1, 2**n)
    order = torch.randperm(n, generator=generator(seed))
    moved = table[:, (bits(n)[:, order] * 2 ** torch.arange(n)).sum(1)]  # coalition C of the new game is {order_i, ...}
    gamma = temperature(table)
    there = exact_values(TableGame(moved), index, weighting, gamma)
    here = exact_values(TableGame(table), index, weighting, gamma)
    place = order.argsort()
    expected = here[:, place] if here.dim() == 2 else here[:, place][:, :, place]
    size = max(float(table.abs().max()), 1e-300)
    assert_near(there / size, expected / size, 1e-12, size=1)


@law(
    "games.exact_values",
    share=20,
    n=st.integers(2, 5),
    index=names,
    weighting=weightings,
    worth=st.floats(-9, 9),
    kind=kinds,
    seed=seeds,
)
def test_a_dummy_gets_what_it_adds(n, index, weighting, worth, kind, seed):
    """Its own worth, whatever the weights, and no interaction."""
    table = numbers(kind, seed, 2**n)
    worth *= temperature(table)
    player = seed % n
    position = torch.arange(2**n)
    game = TableGame(table[position & ~(2**player)] + worth * (position >> player & 1).double())
    value = exact_values(game, index, weighting, temperature(table))[player]
    size = max(temperature(table), abs(worth))
    expected = torch.full_like(value, worth if value.dim() == 0 else 0.0)
    assert_near(value / size, expected / size, 1e-12, size=1)


@law(
    "games.exact_values",
    share=20,
    n=players,
    index=names,
    factor=st.floats(-4, 4),
    constant=st.floats(-4, 4),
    seed=seeds,
)
def test_values_are_linear(n, index, factor, constant, seed):
    """In the game, and a constant changes nothing."""
    one, other = numbers("normal", seed, 2, 2**n)
    both = exact_values(TableGame(one + factor * other + constant), index)
    parts = exact_values(TableGame(one), index) + factor * exact_values(TableGame(other), index)
    assert_near(both, parts, 1e-12, size=10)


@law(
    "games.exact_values",
    share=15,
    n=players,
    index=names,
    factor=st.floats(0.1, 9),
    constant=st.floats(-4, 4),
    seed=seeds,
)
def test_gibbs_weights_know_no_zero_and_no_unit(n, index, factor, constant, seed):
    table = numbers("normal", seed, 2**n)
    plain = exact_values(TableGame(table), index, "gibbs", 0.7)
    scaled = exact_values(TableGame(factor * (table + constant)), index, "gibbs", 0.7 * factor)
    assert_near(scaled / factor, plain, 1e-10, size=10)


@law(
    "games.NormGame",
    "games.SumGame",
    "games.exact_values",
    share=20,
    n=players,
    extra=st.integers(0, 3),
    index=names,
    weighting=weightings,
    activation=activations,
    kind=kinds,
    seed=seeds,
)
def test_padding_and_batch_change_nothing(n, extra, index, weighting, activation, kind, seed):
    values = numbers(kind, seed, 2, n + extra, 3)
    mask = masks(seed, 2, n + extra)
    scale = 1 / temperature(values)
    batch = exact_values(NormGame(values, mask, activation, scale), index, weighting, 0.8)
    for row in range(2):
        here = mask[row]
        alone = exact_values(NormGame(values[row, here], None, activation, scale), index, weighting, 0.8)
        inside = batch[row][here] if alone.dim() == 1 else batch[row][here][:, here]
        assert_near(inside, alone, 1e-9, size=1)
        assert not batch[row][~here].any()
        if alone.dim() == 2:
            assert not batch[row][:, ~here].any()


@law(
    "games.Game",
    "games.NormGame",
    "games.SumGame",
    share=20,
    n=st.integers(1, 6),
    batch=batches,
    activation=activations,
    kind=kinds,
    seed=seeds,
    sums=st.booleans(),
)
def test_fast_differences_are_the_plain_ones(n, batch, activation, kind, seed, sums):
    """`marginals` and `interactions` against those of the class `Game`, which evaluates every coalition."""
    values, mask = numbers(kind, seed, batch, n, 3), masks(seed, batch, n)
    values = values / temperature(values)
    game = SumGame(values, network(seed, 3), mask) if sums else NormGame(values, mask, activation)
    coalitions = torch.rand(batch, 5, n, generator=generator(seed)) < 0.5
    coalitions &= mask[:, None]
    inside = mask[:, None].expand(-1, 5, -1)
    for fast, plain in zip(game.marginals(coalitions), Game.marginals(game, coalitions), strict=True):
        assert_near(fast * inside, plain * inside, 1e-6, size=1)
    rows = slice(seed % n, n)
    pair = inside[:, :, rows, None] & inside[:, :, None] & ~torch.eye(n, dtype=torch.bool)[rows]
    for fast, plain in zip(game.interactions(coalitions, rows), Game.interactions(game, coalitions, rows), strict=True):
        assert_near(fast * pair, plain * pair, 1e-6, size=1)


@law(
    "games.NormGame",
    share=15,
    n=st.integers(1, 6),
    activation=activations,
    scale=st.floats(0.1, 5),
    dtype=types,
    kind=kinds,
    seed=seeds,
)
def test_a_norm_game_is_its_definition(n, activation, scale, dtype, kind, seed):
    values = numbers(kind, seed, n, 3, dtype=dtype)
    game, coalitions = NormGame(values, None, activation, scale), bits(n)
    norm = scale * (coalitions.double() @ values.double()).norm(dim=-1)
    expected = {"tanh": norm.tanh(), "log1p": norm.log1p()}.get(activation, norm)
    assert game(coalitions).dtype == dtype
    assert_near(game(coalitions), expected, 1e-5 if dtype == torch.float32 else 1e-9)


@law("games.TableGame", "games.Game", share=10, n=players, batch=batches, seed=seeds)
def test_a_table_is_looked_up(n, batch, seed):
    table = numbers("normal", seed, batch, 2**n)
    game = TableGame(table)
    assert torch.equal(game(bits(n)), table)
    order = torch.randperm(2**n, generator=generator(seed))
    assert torch.equal(game(bits(n)[order].expand(batch, -1, -1)), table[:, order])
    assert torch.equal(TableGame(table[0])(bits(n)), table[0])
    assert game.counts().tolist() == [n] * batch


@law("games.INDICES", "games.Index", "games.exact_values", share=10, n=players, power=st.floats(-2, 2), seed=seeds)
def test_a_new_index_is_known_by_its_name(n, power, seed):
    """P(T) ~ e^(power |T|): coins of one bias, so the mean over them; afterwards the name is free again."""
    index = Index("power", 1, "power value", lambda others, size: power * size.double())
    table = numbers("normal", seed, 2**n)
    INDICES.register(index)
    try:
        with pytest.raises(ValueError, match="registered already"):
            INDICES.register(index)
        found = exact_values(TableGame(table), "power")
    finally:
        INDICES.unregister("power")
    assert "power" not in INDICES
    chance = torch.tensor(power, dtype=torch.float64).sigmoid()
    expected = torch.zeros(n, dtype=torch.float64)
    for player, context in itertools.product(range(n), range(2**n)):
        if not context >> player & 1:
            size = bin(context).count("1")
            weight = chance**size * (1 - chance) ** (n - 1 - size)
            expected[player] += weight * (table[context | 1 << player] - table[context])
    assert_near(found, expected, 1e-12, size=10)


@law("games.MAX_PLAYERS", "games.exact_values", share=2, more=st.integers(1, 40), index=names)
def test_too_many_players_are_refused_at_once(more, index):
    game = NormGame(torch.ones(MAX_PLAYERS + more, 2))
    with pytest.raises(
        ValueError, match=f"at most {MAX_PLAYERS} players; got {MAX_PLAYERS + more}; use estimate_values"
    ):
        exact_values(game, index)


@law("games.exact_values", share=3, n=players, index=names, weighting=weightings)
def test_a_batch_of_no_games_has_no_values(n, index, weighting):
    for game in (
        TableGame(torch.zeros(0, 2**n)),
        NormGame(torch.zeros(0, n, 2)),
        SumGame(torch.zeros(0, n, 2), lambda sums: sums.sum(-1)),
    ):
        assert exact_values(game, index, weighting).shape == (0, *[n] * INDICES[index].order)
