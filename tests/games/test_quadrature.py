"""All indices of a batch of games from the same coalitions."""

import pytest
import torch

from spinformer.games import Game, NormGame, TableGame, exact_values, quadrature
from spinformer.games.gaussian import Prior
from spinformer.games.quadrature import estimate_all


def smooth_tables(players: int, count: int, seed: int = 0) -> torch.Tensor:
    """Games of a logistic function of pairs: probabilities, as a classifier's."""
    generator = torch.Generator().manual_seed(seed)
    member = (torch.arange(2**players)[:, None] >> torch.arange(players) & 1).double()
    tables = []
    for _ in range(count):
        weight = torch.randn(players, generator=generator).double()
        pair = torch.randn(players, players, generator=generator).double() / players**0.5
        tables.append((member @ weight + ((member @ pair) * member).sum(1) - 1).sigmoid())
    return torch.stack(tables)


def test_few_players_are_exact() -> None:
    table = smooth_tables(7, 3)
    values = estimate_all(TableGame(table), seed=torch.tensor(0))
    for name, estimate in values.by_index.items():
        torch.testing.assert_close(estimate.values, exact_values(TableGame(table), name), rtol=0, atol=1e-9)
        assert not estimate.stderr.any()
    torch.testing.assert_close(values.empty, table[:, 0])


@pytest.mark.parametrize("budget", [4, 16, 100, 0])
def test_shapley_values_add_up_whatever_the_budget(budget: int) -> None:
    table = smooth_tables(11, 4)
    values = estimate_all(TableGame(table), budget, seed=torch.tensor(1))
    torch.testing.assert_close(values.shapley.values.sum(-1), table[:, -1] - table[:, 0], rtol=0, atol=1e-7)


def test_values_are_near_and_intervals_cover() -> None:
    """20 games of 12 players, 200 of 4,096 coalitions: error below 0.15 (pairs 0.45), coverage from 90% to 100%.

    Standard errors are not too large either: at most four times the errors (two for players), root mean squares.
    """
    table = smooth_tables(12, 20)
    values = estimate_all(TableGame(table), 200, seed=torch.tensor(0))
    for name, estimate in values.by_index.items():
        bound = 0.15 if name in ("SV", "BV") else 0.45
        exact = exact_values(TableGame(table), name)
        error = (estimate.values - exact).flatten(1).norm(dim=1) / exact.flatten(1).norm(dim=1)
        assert float(error.mean()) < bound, name
        low, high = estimate.interval()
        inside = ((exact >= low) & (exact <= high)).double()
        assert 0.9 <= float(inside.mean()) <= 1.0, name
        ratio = estimate.stderr.square().mean().sqrt() / (estimate.values - exact).square().mean().sqrt()
        assert float(ratio) < (2 if name in ("SV", "BV") else 4), name


def test_the_number_of_coalitions_follows_the_error() -> None:
    table = smooth_tables(13, 1)
    loose, tight = (estimate_all(TableGame(table), seed=torch.tensor(0), tolerance=bound) for bound in (1.0, 1e-4))
    assert loose.shapley.budget == 512
    assert tight.shapley.budget == 2048
    assert float(tight.shapley.stderr.max()) < float(loose.shapley.stderr.max())


class Padded(Game):
    """A table game among columns that are padding."""

    def __init__(self, table: torch.Tensor, columns: list[int], width: int) -> None:
        self.inner, self.columns = TableGame(table), columns
        self.mask = torch.zeros(len(table), width, dtype=torch.bool)
        self.mask[:, columns] = True
        self.batch, self.players, self.batched = len(table), width, True
        self.dtype, self.device = torch.float64, torch.device("cpu")

    def evaluate(self, coalitions: torch.Tensor) -> torch.Tensor:
        return self.inner.evaluate(coalitions[:, :, self.columns])


@pytest.mark.parametrize("players", [6, 11])
def test_padding_changes_nothing(players: int) -> None:
    table = smooth_tables(players, 2)
    columns = [column for column in range(players + 3) if column not in (0, 4, 5)]
    plain = estimate_all(TableGame(table), 64, seed=torch.tensor(0))
    padded = estimate_all(Padded(table, columns, players + 3), 64, seed=torch.tensor(0))
    for one, other in zip(plain.by_index.values(), padded.by_index.values(), strict=True):
        values = other.values[:, columns] if one.values.dim() == 2 else other.values[:, columns][:, :, columns]
        torch.testing.assert_close(values, one.values)
        assert float(other.values.abs().sum()) == pytest.approx(float(one.values.abs().sum()))


def test_games_of_different_sizes_share_a_batch() -> None:
    values = torch.randn(2, 12, 4, generator=torch.Generator().manual_seed(0)).double()
    mask = torch.tensor([[True] * 12, [True] * 5 + [False] * 7])
    both = estimate_all(NormGame(values, mask), 64, seed=torch.tensor(0))
    alone = estimate_all(NormGame(values[1:, :5]), 64, seed=torch.tensor(0))
    torch.testing.assert_close(both.shapley.values[1, :5], alone.shapley.values[0])
    torch.testing.assert_close(both.shapley_interactions.values[1, :5, :5], alone.shapley_interactions.values[0])
    assert not both.shapley.values[1, 5:].any()


@pytest.mark.parametrize("tolerance", [0.002, 0.004])
def test_values_do_not_depend_on_the_batch(tolerance: float) -> None:
    """Games of 4 to 14 players, of which some are enumerated and some are asked further than others."""
    sizes = [14, 4, 11, 10, 13, 9, 12]
    values = torch.randn(len(sizes), 14, 4, generator=torch.Generator().manual_seed(1)).double()
    values = values * torch.linspace(0.05, 0.3, len(sizes))[:, None, None]
    mask = torch.arange(14) < torch.tensor(sizes)[:, None]
    whole = estimate_all(NormGame(values, mask), seed=torch.tensor(0), tolerance=tolerance)
    asked = whole.shapley.ess[:, 0].tolist()
    assert len({count for count, size in zip(asked, sizes, strict=True) if size > 11}) > 1
    for row, size in enumerate(sizes):
        alone = estimate_all(NormGame(values[row : row + 1, :size]), seed=torch.tensor(0), tolerance=tolerance)
        for one, other in zip(whole.row(row, size).by_index.values(), alone.by_index.values(), strict=True):
            for name in ("values", "stderr", "ess"):
                torch.testing.assert_close(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-9)
        torch.testing.assert_close(whole.empty[row : row + 1], alone.empty)


def test_gradients_of_few_players_are_exact() -> None:
    values = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()

    def total(features: torch.Tensor) -> torch.Tensor:
        estimate = estimate_all(NormGame(features), 40, seed=torch.tensor(0))
        return estimate.shapley.values @ torch.arange(5.0).double() + estimate.shapley_interactions.values[0, 1]

    assert torch.autograd.gradcheck(total, (values,), atol=1e-6)


def test_gradients_of_many_players_add_up() -> None:
    """Shapley values share out v(N) - v(nothing), and so do their gradients."""
    values = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double().requires_grad_()
    estimate = estimate_all(NormGame(values), 40, seed=torch.tensor(0))
    (found,) = torch.autograd.grad(estimate.shapley.values.sum(), values)
    (expected,) = torch.autograd.grad(values.sum(0).norm(), values)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_bad_budgets_are_refused() -> None:
    with pytest.raises(ValueError, match="budget must be 0 or at least 4"):
        estimate_all(TableGame(torch.rand(8)), 3, seed=torch.tensor(0))


def test_the_sample_size_is_the_number_of_coalitions() -> None:
    """Of 5 and 12 players: 2^5 where all are asked, the budget elsewhere."""
    values = torch.randn(2, 12, 3, generator=torch.Generator().manual_seed(0)).double()
    mask = torch.arange(12) < torch.tensor([[5], [12]])
    for estimate in estimate_all(NormGame(values, mask), 50, seed=torch.tensor(0)).by_index.values():
        assert (estimate.ess[0] == 32).all()
        assert (estimate.ess[1] == 50).all()


@pytest.mark.parametrize("index", ["BII", "SII"])
def test_errors_of_many_pairs_are_those_of_some(index: str) -> None:
    """Of 44 players: the mean variance of SOME_PAIRS is within 5% of that of all, no pair's error above it by 20%."""
    key = (44, 512, 0, "cpu")
    found, exact = quadrature._deviations(index, *key), quadrature._quadrature(*key).deviations(index)
    pairs = torch.triu_indices(44, 44, 1).unbind()
    assert float(found.diagonal().abs().max()) == 0
    every = exact[pairs]
    assert float(found[0, 1]) == pytest.approx(float(every.square().mean().sqrt()), rel=0.05)
    assert float(every.max()) <= 1.2 * float(found[0, 1])


@pytest.mark.parametrize("index", ["BII", "SII"])
def test_covariances_of_all_pairs_are_those_of_each(index: str) -> None:
    """By products of matrices and by sums, of one set of coalitions and of two at once; and their gradients."""
    coalitions = torch.rand(2, 20, 7, generator=torch.Generator().manual_seed(0)) < 0.5
    ratios = (0.1 + 0.5 * torch.rand(2, 7, generator=torch.Generator().manual_seed(1))).double()
    pairs = torch.triu_indices(7, 7, 1).unbind()
    slopes = []
    for chosen in (None, pairs):
        leaf = ratios.clone().requires_grad_()
        found = Prior(coalitions, leaf).cross_covariance(index, chosen)
        assert found.shape == (2, 21, 20)
        slopes.append((found, torch.autograd.grad(found.square().sum(), leaf)[0]))
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)
    alone = Prior(coalitions[1], ratios[1]).cross_covariance(index)
    torch.testing.assert_close(alone, slopes[0][0][1].detach())
