"""Where coalitions are drawn from: their probabilities, their reflections, and who is held out."""

import math

import pytest
import torch

from spinformer.games import NormGame
from spinformer.games.designs import all_coalitions
from spinformer.games.proposals import ABSENCES, SizeWeighted, Tilted, _absent


@pytest.mark.parametrize("index", ["SV", "BV", "SII", "BII"])
def test_probabilities_of_single_coalitions(index: str) -> None:
    """1 / ((n + 1) binom(n, |C|)) or 2^-n, for one coalition at a time as for all at once."""
    source, every = SizeWeighted(index, torch.tensor([5])), all_coalitions(5)
    together = source.log_probability(every[None])[0]
    for coalition, log_probability in zip(every, together, strict=True):
        alone = source.log_probability(coalition[None, None])
        size = int(coalition.sum())
        expected = 1 / (6 * math.comb(5, size)) if index[0] == "S" else 2**-5
        assert float(log_probability.exp()) == pytest.approx(expected)
        assert float(alone.exp()) == pytest.approx(expected)


@pytest.mark.parametrize("index", ["SV", "BV"])
def test_every_second_draw_is_a_complement(index: str, generator: torch.Generator) -> None:
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    game = NormGame(torch.randn(2, 6, 3, generator=generator), mask)
    drawn = SizeWeighted(index, game.counts()).draw(game, 40, torch.tensor(1), paired=True, shared=False)
    assert torch.equal(drawn[:, 1::2], ~drawn[:, ::2] & mask[:, None])


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_players_of_largest_marginal_are_held_out_in_any_unit(unit: float, generator: torch.Generator) -> None:
    game = NormGame(torch.randn(3, 20, 4, generator=generator, dtype=torch.float64))
    marginal = torch.rand(3, 20, generator=generator, dtype=torch.float64)
    held = _absent(game, unit * marginal)
    assert torch.equal(held.sort(-1).values, marginal.topk(ABSENCES).indices.sort(-1).values)


@pytest.mark.parametrize("paired", [False, True])
def test_every_solution_gets_its_share_of_the_draws(paired: bool, generator: torch.Generator) -> None:
    """Of a mixture with weights w, each part makes w K of K draws, to less than one: not only in the mean."""
    chosen = []

    class Counted(Tilted):
        def probabilities(self, t: torch.Tensor) -> torch.Tensor:
            edges = torch.nn.functional.pad(self.weight.cumsum(-1), (1, 0))[:, None]
            chosen.append(((t > edges[..., :-1]) & (t <= edges[..., 1:])).sum(1))  # (B, M + 2)
            return super().probabilities(t)

    game = NormGame(torch.randn(3, 7, 3, generator=generator, dtype=torch.float64))
    source = Counted(game, torch.ones(3, dtype=torch.float64))
    source.draw(game, 400, torch.tensor(1), paired=paired, shared=False)
    assert ((chosen[0] - 400 * source.weight).abs() < (2 if paired else 1)).all()
