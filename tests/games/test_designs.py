"""Coalitions to ask about."""

import pytest
import torch

from spinformer.games import designs
from spinformer.games.designs import _draw, all_coalitions, paired_design


@pytest.mark.parametrize(("players", "count"), [(5, 10), (9, 40), (14, 256), (70, 64)])
def test_designs_hold_both_ends_and_pairs_that_differ(players: int, count: int) -> None:
    design = paired_design(players, count, torch.tensor(2))
    assert design.shape == (count, players)
    assert not design[0].any()
    assert design[1].all()
    assert torch.equal(design[2::2], ~design[3::2])
    assert len(design.unique(dim=0)) == count


def test_a_larger_design_begins_with_a_smaller_one() -> None:
    small, large = (paired_design(12, count, torch.tensor(4)) for count in (64, 512))
    assert torch.equal(large[:64], small)


def test_few_players_are_enumerated() -> None:
    design = paired_design(4, 100, torch.tensor(0))
    assert torch.equal(design[[0, *range(2, 16), 1]], all_coalitions(4))
    assert torch.equal(paired_design(1, 4, torch.tensor(0)), torch.tensor([[False], [True]]))


def test_sizes_follow_the_law() -> None:
    """P(s) ~ 1 / sqrt(s (n - s)) of the draws, before those that were drawn twice are passed over (bound: 5 sigma)."""
    sizes = _draw(40, 8000, torch.tensor(0)).sum(1)
    law = torch.arange(1, 40).double()
    law = (law * (40 - law)).rsqrt()
    share = torch.bincount(sizes, minlength=41)[1:40].double() / 8000
    expected = law / law.sum()
    assert bool(((share - expected).abs() < 5 * (expected * (1 - expected) / 8000).sqrt()).all())


def test_bad_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="count"):
        paired_design(4, 1, torch.tensor(0))


def test_draws_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the same coalition is drawn over and over, the design is short, after REPEATS times the draws."""
    asked = []

    def same(players: int, draws: int, seed: torch.Tensor) -> torch.Tensor:
        asked.append(draws)
        return torch.tensor([[True, False, False, True, False]]).expand(draws, players)

    monkeypatch.setattr(designs, "_draw", same)
    design = paired_design(5, 10, torch.tensor(0))
    assert design.int().tolist() == [[0] * 5, [1] * 5, [1, 0, 0, 1, 0], [0, 1, 1, 0, 1]]
    assert asked[-1] == designs.REPEATS * asked[0]
