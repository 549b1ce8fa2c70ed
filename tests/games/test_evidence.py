"""Values of one game with a prior that is chosen by evidence."""

import pytest
import torch

from spinformer.games import TableGame, evidence, exact_values
from spinformer.games.designs import all_coalitions, paired_design
from spinformer.games.evidence import BOUND, GUESS, SPREAD, _evidence, _learnt, regress
from spinformer.games.gaussian import CONSTANT, index_variances, order_ratios
from spinformer.games.values import player_weights
from tests.games.test_quadrature import smooth_tables


def position(design: torch.Tensor) -> torch.Tensor:
    return (design * 2 ** torch.arange(design.shape[1])).sum(1)


def test_all_coalitions_are_exact_in_any_order() -> None:
    table = smooth_tables(6, 1)[0]
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    values = regress(all_coalitions(6)[order], table[order])
    for name, estimate in values.by_index.items():
        torch.testing.assert_close(estimate.values[0], exact_values(TableGame(table), name), rtol=0, atol=1e-9)
        assert not estimate.stderr.any()


def test_errors_of_chosen_pairs_are_those_of_all() -> None:
    """Values, and the errors of the pairs that were asked for; those of others are NaN, the diagonal is 0."""
    table = smooth_tables(7, 1)[0]
    design = paired_design(7, 40, torch.tensor(0))
    first, second = torch.tensor([0, 2]), torch.tensor([3, 6])
    every, some = (regress(design, table[position(design)], pairs=pairs) for pairs in (None, (first, second)))
    for name, estimate in every.by_index.items():
        other = some.by_index[name]
        torch.testing.assert_close(other.values, estimate.values, rtol=0, atol=0)
        if estimate.stderr.dim() == 2:
            torch.testing.assert_close(other.stderr, estimate.stderr, rtol=0, atol=0)
            continue
        asked = torch.eye(7, dtype=torch.bool)
        asked[first, second] = asked[second, first] = True
        torch.testing.assert_close(other.stderr[0][asked], estimate.stderr[0][asked], rtol=1e-9, atol=0)
        assert bool(other.stderr[0][~asked].isnan().all())


@pytest.mark.parametrize("count", [4, 10, 60, 200])
def test_values_add_up(count: int) -> None:
    table = smooth_tables(11, 1)[0]
    design = paired_design(11, count, torch.tensor(0))
    values = regress(design, table[position(design)])
    assert float(values.shapley.values.sum()) == pytest.approx(float(table[-1] - table[0]), abs=1e-6)


def test_values_add_up_where_the_prior_is_nearly_singular() -> None:
    """Two players do nearly everything, so nearly all ratios are at their least: the jitter alone leaves 3e-7."""
    design = paired_design(12, 257, torch.tensor(3))
    noise = torch.randn(len(design), generator=torch.Generator().manual_seed(0)).double()
    answers = (8 * (design[:, 0] & design[:, 1]).double() - 4).sigmoid() + 1e-4 * noise
    weights = torch.tensor([1.0] * 2 + [0.02] * 10)
    values = regress(design, answers, weights=weights / weights.mean())
    assert float(values.shapley.values.sum()) == pytest.approx(float(answers[1] - answers[0]), abs=1e-9)


def test_weights_of_the_players_that_matter_make_values_nearer() -> None:
    """12 games in which 4 of 12 players do nearly everything: 80 coalitions, mean error with weights below without."""
    generator = torch.Generator().manual_seed(1)
    member = all_coalitions(12).double()
    errors = []
    for _ in range(12):
        strength = torch.tensor([3.0] * 4 + [0.1] * 8).double()
        weight = strength * torch.randn(12, generator=generator).double()
        pair = torch.outer(strength, strength) * torch.randn(12, 12, generator=generator).double() / 6
        table = (member @ weight + ((member @ pair) * member).sum(1)).sigmoid()
        design = paired_design(12, 80, torch.tensor(0))
        exact = exact_values(TableGame(table), "SV")
        found = [
            regress(design, table[position(design)], weights=w) for w in (torch.ones(12), strength / strength.mean())
        ]
        errors.append(
            [
                float((each.shapley.values[0] - exact).norm() / exact.norm())
                for each in (*found, regress(design, table[position(design)]))
            ]
        )
    alike, known, found = torch.tensor(errors).mean(0).tolist()
    assert known < 0.8 * alike
    assert found < 0.9 * alike


def test_few_coalitions_are_drawn_to_nothing_and_say_so() -> None:
    """40 games of pure noise of size 0.1: with a guess of the scale, 8 coalitions change values by less than noise."""
    generator = torch.Generator().manual_seed(0)
    design = paired_design(12, 8, torch.tensor(0))
    inside, size = [], []
    for table in 0.1 * torch.randn(40, 2**12, generator=generator).double():
        values = regress(design, table[position(design)], weights=torch.ones(12), scale=0.02).shapley
        exact = exact_values(TableGame(table), "SV")
        inside.append(((values.values[0] - exact).abs() <= 1.96 * values.stderr[0]).double().mean())
        size.append(values.values.abs().mean())
    assert float(torch.stack(inside).mean()) > 0.9
    assert float(torch.stack(size).mean()) < 0.05


def test_weights_have_mean_one_and_leave_nobody_out() -> None:
    weights = player_weights(torch.tensor([0.0, 0.1, 0.5]))
    assert float(weights.mean()) == pytest.approx(1)
    assert float(weights.min()) > 0


def test_learnt_ratios_make_values_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same games with 200 coalitions and no word about who matters: mean error with learnt ratios below without.

    Intervals of 95% still hold at least 88% of the values.
    """
    generator = torch.Generator().manual_seed(1)
    member, design = all_coalitions(12).double(), paired_design(12, 200, torch.tensor(0))
    strength = torch.tensor([3.0] * 3 + [0.5] * 9).double()
    errors: dict[bool, list[float]] = {True: [], False: []}
    inside = []
    for _ in range(12):
        weight = strength * torch.randn(12, generator=generator).double()
        pair = torch.outer(strength, strength) * torch.randn(12, 12, generator=generator).double() / 6
        table = (member @ weight + ((member @ pair) * member).sum(1)).sigmoid()
        exact = exact_values(TableGame(table), "SV")
        for learn in errors:
            monkeypatch.setattr(evidence, "LEARN", 128 if learn else 10**9)
            found = regress(design, table[position(design)], weights=torch.ones(12)).shapley
            errors[learn].append(float((found.values[0] - exact).norm() / exact.norm()))
            if learn:
                inside.append(((found.values[0] - exact).abs() <= 1.96 * found.stderr[0]).double().mean())
    assert sum(errors[True]) < 0.9 * sum(errors[False])
    assert float(torch.stack(inside).mean()) > 0.88


def test_learning_leaves_the_caller_alone() -> None:
    """Under inference mode, without gradients, twice the same numbers."""
    table, design = smooth_tables(12, 1)[0], paired_design(12, 150, torch.tensor(0))
    plain = regress(design, table[position(design)]).shapley.values
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            again = regress(design.clone(), table.clone()[position(design)]).shapley.values
            assert torch.equal(again, plain)
            assert not torch.is_grad_enabled()
    assert not plain.requires_grad


def test_errors_are_in_the_units_of_the_values() -> None:
    """Ten times the values have ten times the errors; the root mean square of both is alike, and pairs have no selves.

    The first value is that of nobody.
    """
    table, design = smooth_tables(10, 1)[0] + 3, paired_design(10, 100, torch.tensor(0))
    weights = torch.ones(10)
    found, larger = (regress(design, part[position(design)], weights=weights) for part in (table, 10 * table))
    torch.testing.assert_close(found.empty, table[:1])
    for name, estimate in found.by_index.items():
        torch.testing.assert_close(larger.by_index[name].stderr, 10 * estimate.stderr)
        error = estimate.values - exact_values(TableGame(table), name)
        ratio = estimate.stderr.square().mean().sqrt() / error.square().mean().sqrt()
        assert 0.5 < float(ratio) < 4, name
    assert not found.interactions.stderr[0].diagonal().any()


@pytest.mark.parametrize("scale", [None, 0.05, 3.0])
def test_evidence_is_a_probability(scale: float | None) -> None:
    """Between two priors: log of the ratio of p(v), by sums over amplitudes t of normal densities

    1 / t has a gamma distribution of GUESS degrees of freedom around that of the guess; without one, the best t counts.
    """
    design = paired_design(6, 12, torch.tensor(0))
    values = smooth_tables(6, 1)[0][position(design)]
    log_t = torch.linspace(-40, 20, 6001, dtype=torch.float64)
    found, expected = [], []
    for order in (0.75, 3.0):
        ratios = order_ratios(6, order, torch.linspace(0.5, 1.5, 6))
        found.append(_evidence(design, values[None], ratios, scale))
        spins = 2 * design.double() - 1
        kernel = CONSTANT + ((1 + ratios * spins[:, None] * spins) / (1 + ratios)).prod(-1)
        square = values @ torch.linalg.solve(kernel, values)
        density = -(12 * log_t + kernel.logdet() + square * (-log_t).exp()) / 2
        if scale is None:
            expected.append(density.max())
        else:
            guess = scale**2 / index_variances("SV", ratios).mean()
            shape = GUESS / 2
            prior = shape * (shape * guess).log() - shape * log_t - shape * guess * (-log_t).exp()
            expected.append((density + prior).logsumexp(0))
    assert found[0] - found[1] == pytest.approx(float(expected[0] - expected[1]), abs=1e-4)


def skewed() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A game of ten players of whom two do nearly everything, and ratios that do not know it."""
    design = paired_design(10, 130, torch.tensor(0))
    member = design.double()
    values = (3 * member[:, 1] * member[:, 4] - 2 * member[:, 1] + 0.1 * member @ torch.randn(10).double()).tanh()
    return design, values[None], order_ratios(10)


def test_learnt_ratios_are_likelier_and_near() -> None:
    """log p(v | r), less the penalty of the smallest changes that lead to r, is above that of the start.

    Those who do much get larger ratios beside the others'.
    """
    design, values, start = skewed()
    found = _learnt(design, values, start)
    moved = BOUND * ((found / start).log() / BOUND).atanh()
    shared = moved.sum() / SPREAD**2 / (1 + 10 / SPREAD**2)
    penalty = ((moved - shared) / SPREAD).square().sum() + shared.square()
    gain = _evidence(design, values, found, None) - _evidence(design, values, start, None)
    assert gain > float(penalty) / 2 + 1
    assert set(found.topk(2).indices.tolist()) == {1, 4}


def test_learnt_ratios_follow_their_players() -> None:
    design, values, start = skewed()
    order = torch.tensor([4, 0, 9, 2, 6, 1, 8, 3, 7, 5])
    moved = _learnt(design[:, order], values, start[order])
    torch.testing.assert_close(moved, _learnt(design, values, start)[order], rtol=1e-4, atol=0)


def test_ratios_are_learnt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the last round: the search takes longer than all else."""
    design, values, _ = skewed()
    starts = []

    def same(coalitions: torch.Tensor, values: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        starts.append(start)
        return start

    monkeypatch.setattr(evidence, "_learnt", same)
    regress(design, values[0])
    assert len(starts) == 1
    assert set(starts[0].topk(2).indices.tolist()) == {1, 4}
