"""Coalitions that tell most."""

import pytest
import torch

from spinformer.games import TableGame, exact_values, selection
from spinformer.games.designs import all_coalitions, paired_design
from spinformer.games.evidence import regress
from spinformer.games.gaussian import Quadrature, order_ratios
from spinformer.games.selection import CHOSEN, ORDER, PAIR_INDEX, TARGETS, _choose, _pairs, _targets, informative_design
from tests.games.test_evidence import position
from tests.games.test_quadrature import smooth_tables


@pytest.mark.parametrize(("players", "count"), [(2, 3), (5, 12), (5, 40), (9, 64), (12, 200), (30, 100), (70, 33)])
def test_different_coalitions_and_their_complements(players: int, count: int) -> None:
    design = informative_design(players, count, torch.tensor(1))
    assert len(design) <= count
    assert len(design) == len(design.unique(dim=0))
    assert not design[0].any()
    assert design[1].all()
    if len(design) < 2**players:
        assert torch.equal(design[2::2], ~design[3::2])


def test_a_larger_count_begins_with_the_same() -> None:
    weights = torch.rand(12, generator=torch.Generator().manual_seed(0)) + 0.1
    few, more, many = (
        informative_design(12, count, torch.tensor(4), weights / weights.mean())
        for count in (40, 2 * CHOSEN + 2, 2 * CHOSEN + 200)
    )
    assert torch.equal(more[: len(few)], few)
    assert torch.equal(many[: len(more)], more)
    assert len(many) == 2 * CHOSEN + 200


@pytest.mark.parametrize("index", ["SV", "BV"])
@pytest.mark.parametrize(
    ("order", "weights"), [(ORDER, (2.0, 1.0, 1.0, 0.5, 0.5)), (0.02, (0.2, 0.8, 2.3, 0.75, 0.95))]
)
def test_each_pair_takes_most_variance_from_the_values(order: float, weights: tuple[float, ...], index: str) -> None:
    """Against plain posterior variances: of all pairs of five players, the next one chosen leaves least."""
    ratios, pool = order_ratios(5, order, torch.tensor(weights)), _pairs(5, 15, torch.tensor(0))
    chosen = _choose(pool, ratios, 4, index)

    def left(rows: list[int]) -> float:
        half = torch.cat([torch.zeros(1, 5, dtype=torch.bool), pool[rows]])
        asked = Quadrature(torch.cat([half, ~half]), ratios)
        total = 0.0
        for name, importance in ((index, 1.0), (PAIR_INDEX[index], 0.3)):
            before = Quadrature(torch.cat([half[:1], ~half[:1]]), ratios)
            scale = before_asking(name, ratios)
            after = asked.deviations(name).square().sum() / (1 if name == index else 2)
            total += importance**2 * float(after / scale)
            assert after <= before.deviations(name).square().sum()
        return total

    for count in range(len(chosen)):
        rest = [row for row in range(len(pool)) if row not in chosen[:count]]
        best = min(rest, key=lambda row: left([*chosen[:count], row]))
        assert left([*chosen[:count], chosen[count]]) == pytest.approx(left([*chosen[:count], best]), rel=1e-6)


def before_asking(name: str, ratios: torch.Tensor) -> torch.Tensor:
    from spinformer.games.gaussian import index_variances

    return index_variances(name, ratios).sum()


def test_values_are_nearer_than_with_drawn_ones() -> None:
    """12 games of 11 players, 128 coalitions: two thirds of the mean error at most (measured: 0.049 for 0.093)."""
    errors = []
    for seed, table in enumerate(smooth_tables(11, 12)):
        exact = exact_values(TableGame(table), "SV")
        designs = (
            paired_design(11, 129, torch.tensor(seed)),
            informative_design(11, 129, torch.tensor(seed)),
        )
        found = [regress(design, table[position(design)]).shapley.values[0] for design in designs]
        errors.append([float((each - exact).norm() / exact.norm()) for each in found])
    drawn, chosen = torch.tensor(errors).mean(0).tolist()
    assert chosen < drawn * 2 / 3


@pytest.mark.parametrize(("index", "other"), [("SV", "BV"), ("BV", "SV")])
def test_what_is_asked_tells_of_the_values_that_are_wanted(index: str, other: str) -> None:
    """12 games of 11 players, 48 coalitions chosen for these values or for the others.

    Measured errors: 0.116 for 0.190 of SV, 0.162 for 0.165 of BV, which in such smooth games large coalitions tell too.
    """
    errors = []
    for seed, table in enumerate(smooth_tables(11, 12)):
        exact = exact_values(TableGame(table), index)
        designs = [informative_design(11, 49, torch.tensor(seed), index=name) for name in (index, other)]
        found = [regress(design, table[position(design)]).by_index[index].values[0] for design in designs]
        errors.append([float((each - exact).norm() / exact.norm()) for each in found])
    own, others = torch.tensor(errors).mean(0).tolist()
    assert own < others


def test_players_who_matter_are_asked_about() -> None:
    """Of 12 players 3 do everything: their 8 coalitions are among the first 4 pairs, beside none and all."""
    weights = torch.tensor([4.0] * 3 + [1e-3] * 9)
    design = informative_design(12, 10, torch.tensor(0), weights / weights.mean())
    assert len(design[:, :3].unique(dim=0)) == len(all_coalitions(3))


def test_without_a_choice_the_design_is_that_of_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "CHOSEN", 0)
    seed = torch.tensor(3)
    assert torch.equal(informative_design(11, 60, seed), paired_design(11, 60, seed))
    assert len(_pairs(11, 40, seed)) == 40


def test_the_pairs_that_count_have_the_largest_products(generator: torch.Generator) -> None:
    """Of 20 players; where all are alike, the first pairs."""
    ratios = torch.rand(20, generator=generator, dtype=torch.float64)
    every = [(first, second) for first in range(20) for second in range(first + 1, 20)]
    largest = sorted(every, key=lambda pair: -float(ratios[pair[0]] * ratios[pair[1]]))[:TARGETS]
    assert list(zip(*(part.tolist() for part in _targets(ratios)), strict=True)) == largest
    alike = _targets(torch.full((20,), 0.1))
    assert list(zip(*(part.tolist() for part in alike), strict=True)) == every[:TARGETS]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_of_all_coalitions_one_of_each_pair(players: int) -> None:
    half = _pairs(players, 2**players, torch.tensor(0))
    assert len(half) == 2 ** (players - 1) - 1
    both = torch.cat([half, ~half])
    assert len(both.unique(dim=0)) == len(both)
    assert not (both.all(1) | ~both.any(1)).any()
