"""Shapley values of many players from what each adds to a few coalitions."""

import pytest
import torch

from spinformer.games import NormGame, SumGame, TableGame, exact_values
from spinformer.games.quadrature import OWN, estimate_all
from spinformer.games.toggles import (
    CONTEXTS,
    LONG,
    STRONGEST,
    STUDENT,
    context_count,
    contexts,
    strongest,
    toggled_pairs,
    toggled_values,
)


def readout(sums: torch.Tensor) -> torch.Tensor:
    """A logistic function: a probability, as a classifier's."""
    return (2 * sums[..., 0] + sums[..., 1] * sums[..., 2]).sigmoid()


def vectors(batch: int, players: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(batch, players, 3, generator=generator, dtype=torch.double) / players**0.5


@pytest.mark.parametrize("count", [*CONTEXTS])
@pytest.mark.parametrize("index", ["SV", "SII"])
def test_means_are_the_exact_values_and_errors_cover(index: str, count: int) -> None:
    """9 players, 200 seeds: the mean within 4 standard errors of the exact values, and 0.01 of the weights' ratio;
    the 95% intervals hold them in 90 to 99.5%."""
    table = torch.rand(1, 2**9, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    game, columns = TableGame(table), torch.arange(9)
    exact = exact_values(game, index)[0]
    found = [toggled_values(game, 0, columns, count, torch.tensor(seed))[index] for seed in range(200)]
    values, errors = (torch.stack(part) for part in zip(*found, strict=True))
    spread = values.std(0) / 200**0.5
    assert bool(((values.mean(0) - exact).abs() < 4 * spread + 0.01).all())
    inside = (values - exact).abs() <= 1.96 * errors
    covered = float((inside if index == "SV" else inside[:, ~torch.eye(9, dtype=torch.bool)]).double().mean())
    assert 0.9 < covered < 0.995


@pytest.mark.parametrize("index", ["BV", "BII"])
def test_banzhaf_errors_cover(index: str) -> None:
    """15 players of a smooth game, 100 seeds: 95% intervals hold the exact values in 90% of cases or more. They are of
    coalitions near q = 1/2, and their bias is less than a fifth of the largest value."""
    game = SumGame(vectors(1, 15), readout)
    exact, off = exact_values(game, index)[0], ~torch.eye(15, dtype=torch.bool)
    found = [toggled_values(game, 0, torch.arange(15), 16, torch.tensor(seed))[index] for seed in range(100)]
    values, errors = (torch.stack(part) for part in zip(*found, strict=True))
    told = errors.isfinite() if index == "BV" else errors.isfinite() & off
    assert float(((values - exact).abs() <= 1.96 * errors)[told].double().mean()) > 0.9
    if index == "BV":
        assert float((values.mean(0) - exact).abs().max()) < 0.2 * float(exact.abs().max())


def test_the_same_in_all_coalitions() -> None:
    """Where a player adds the same to every coalition, few give the exact values of all indices."""
    game = SumGame(vectors(1, 7), lambda sums: sums.sum(-1))
    for index, (value, stderr) in toggled_values(game, 0, torch.arange(7), CONTEXTS[0], torch.tensor(3)).items():
        torch.testing.assert_close(value, exact_values(game, index)[0])
        assert float(stderr.max()) < 1e-12


@pytest.mark.parametrize("index", ["SV", "SII", "BV", "BII"])
def test_games_of_pairs(index: str) -> None:
    """Where players add more to larger coalitions, means over 300 seeds are the exact values of all indices, and the
    standard errors, which know nothing of the sizes' order, are about what they err by."""
    game = SumGame(vectors(1, 7), lambda sums: sums.square().sum(-1))
    exact, off = exact_values(game, index)[0], ~torch.eye(7, dtype=torch.bool)
    found = [toggled_values(game, 0, torch.arange(7), 8, torch.tensor(seed))[index] for seed in range(300)]
    values, errors = (torch.stack(part) for part in zip(*found, strict=True))
    scale = float(exact_values(game, "SV").abs().max())
    torch.testing.assert_close(values.mean(0), exact, rtol=0, atol=0.05 * scale)
    if exact.dim() == 1:
        ratio = errors.mean() / values.std(0).mean()
        assert 1 < float(ratio) < 5
    else:
        torch.testing.assert_close(values[:, off], exact[off].expand(300, -1))  # every coalition tells


def test_pairs_are_of_the_strongest() -> None:
    """The others are 0, and their standard errors infinite."""
    game = SumGame(vectors(1, 30), readout)
    found = toggled_values(game, 0, torch.arange(30), 8, torch.tensor(1))
    strong = found["SV"][0].abs().topk(STRONGEST).indices
    known = torch.zeros(30, 30, dtype=torch.bool)
    known[strong[:, None], strong] = True
    for index in ("SII", "BII"):
        value, stderr = found[index]
        assert torch.equal(stderr.isfinite(), known | torch.eye(30, dtype=torch.bool))
        assert float(value[~known].abs().max()) == 0
        assert torch.equal(value, value.mT)
        assert float(value.diagonal().abs().max()) == float(stderr.diagonal().max()) == 0


def test_contexts() -> None:
    coalitions, place = contexts(400, 8, torch.tensor(0))
    assert bool(((place * 8).floor() == torch.arange(8)).all())  # stratified
    torch.testing.assert_close(coalitions.double().mean(1), place.square(), rtol=0, atol=0.1)
    assert set(range(1, CONTEXTS[1] // 2)) <= set(STUDENT)
    assert [context_count(players, 3328) for players in (101, 250, 300, 500)] == [16, 13, 11, 6]


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
        for index, estimate in found.by_index.items():
            part = together.by_index[index]
            at = (row, where) if estimate.values.dim() == 2 else (row, where[:, None], where)
            for name in ("values", "stderr", "ess"):
                torch.testing.assert_close(getattr(part, name)[at], getattr(estimate, name)[0])
        gain = alone(torch.ones(1, len(where), dtype=torch.bool)) - alone(torch.zeros(1, len(where), dtype=torch.bool))
        assert float(found.shapley.values.sum()) == pytest.approx(float(gain), abs=1e-9)
    taken = 16 * (1 + players + STRONGEST * (STRONGEST - 1) // 2)
    assert int(together.shapley.ess[0, 0]) == taken
    told = together.shapley_interactions.ess[0].triu(1)
    assert int((told > 0).sum()) == STRONGEST * (STRONGEST - 1) // 2
    assert set(told.unique().tolist()) == {0.0, taken}
    assert float(together.shapley.values[1, ~mask[1]].abs().max()) == 0


def test_interactions_of_some_players() -> None:
    """More than OWN players, and no more than LONG: Shapley values by quadrature, pairs of the strongest by toggles."""
    players, pairs = OWN + 5, STRONGEST * (STRONGEST - 1) // 2
    count = context_count(STRONGEST + pairs, 512)
    game = SumGame(vectors(2, players), readout)
    found = estimate_all(game, 512, seed=3)
    for row in range(2):
        strong = strongest(found.shapley.values[row])
        expected = toggled_pairs(game, row, torch.arange(players), count, torch.tensor(3), strong)
        for index in ("SII", "BII"):
            value, stderr = expected[index]
            torch.testing.assert_close(found.by_index[index].values[row], value)
            torch.testing.assert_close(found.by_index[index].stderr[row], stderr)
        together = toggled_values(game, row, torch.arange(players), count, torch.tensor(3), strong)
        torch.testing.assert_close(together["SII"], expected["SII"])
    gain = game(torch.ones(1, players, dtype=torch.bool)) - game(torch.zeros(1, players, dtype=torch.bool))
    torch.testing.assert_close(found.shapley.values.sum(1), gain[:, 0], rtol=0, atol=1e-9)
    assert int(found.shapley.ess[0, 0]) == 512 + count * (1 + STRONGEST + pairs)


@pytest.mark.parametrize("players", [OWN + 5, LONG + 5])
def test_without_pairs(players: int) -> None:
    """Values of players are the same, for fewer coalitions, and nothing is told of pairs."""
    game = SumGame(vectors(1, players), readout)
    whole, found = (estimate_all(game, 512, seed=3, pairs=pairs) for pairs in (True, False))
    for name in ("SV", "BV"):
        torch.testing.assert_close(found.by_index[name].values, whole.by_index[name].values)
        torch.testing.assert_close(found.by_index[name].stderr, whole.by_index[name].stderr)
    assert float(found.shapley.ess[0, 0]) < float(whole.shapley.ess[0, 0])
    assert float(found.interactions.ess[0].fill_diagonal_(0).max()) == 0


def test_a_small_budget_is_kept_to() -> None:
    game = SumGame(vectors(1, LONG + 5), readout)
    assert int(estimate_all(game, 64, seed=0).shapley.ess[0, 0]) == 64


def test_a_batch_of_few_and_many_players() -> None:
    """Each is read in its own way, and as if it were alone."""
    drawn, mask = vectors(2, LONG + 10), torch.ones(2, LONG + 10, dtype=torch.bool)
    mask[0, 12:] = False
    together = estimate_all(SumGame(drawn, readout, mask), seed=0)
    few = estimate_all(SumGame(drawn[:1, :12], readout), seed=0)
    many = estimate_all(SumGame(drawn[1:], readout), seed=0)
    torch.testing.assert_close(together.shapley.values[0, :12], few.shapley.values[0])
    torch.testing.assert_close(together.shapley_interactions.values[0, :12, :12], few.shapley_interactions.values[0])
    torch.testing.assert_close(together.shapley.values[1], many.shapley.values[0])
    torch.testing.assert_close(together.empty, torch.cat([few.empty, many.empty]))


def test_the_plain_form() -> None:
    values = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0))
    game = NormGame(values)
    coalitions = torch.rand(3, 6, generator=torch.Generator().manual_seed(1)) < 0.5
    for sets in ([[4], [0]], [[4, 1], [0, 5], [2, 3]]):
        found = game.toggled(1, coalitions, torch.tensor(sets))
        assert found.shape == (3, len(sets))
        for row, coalition in enumerate(coalitions):
            for place, players in enumerate(sets):
                other = coalition.clone()
                other[players] ^= True
                torch.testing.assert_close(found[row, place], game(other[None])[1, 0])
