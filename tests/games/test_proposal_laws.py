"""Laws of proposals: what is said of contexts is what the coalitions drawn add up to."""

import pytest
import torch

from spinformer.games.annealed import Annealed
from spinformer.games.indices import INDICES
from spinformer.games.proposals import SizeWeighted
from tests.games.test_annealed import learnt

BIASED = [name for name, index in INDICES.items() if index.bias is not None and index.order == 1]


@pytest.mark.parametrize("name", BIASED)
@pytest.mark.parametrize("players", [2, 5])
def test_contexts_of_a_player_have_probability_one(name, players):
    """The sum over all T without i of P(T), for every player i."""
    every = (torch.arange(2**players)[:, None] >> torch.arange(players) & 1).bool()[None]
    proposal = SizeWeighted(name, torch.tensor([players]))
    unused = torch.zeros(1)
    total = (proposal.log_without_one(every, unused, unused).double().exp() * ~every).sum(1)
    torch.testing.assert_close(total, torch.ones_like(total))


@pytest.mark.parametrize("temperature", [0.25, 2.0])
def test_a_context_is_drawn_with_its_player_or_without(temperature):
    """log P(T) of contexts is that of both coalitions, T and T + i, together."""
    game = learnt()
    proposal = Annealed(game, torch.full((game.batch,), temperature, dtype=torch.double))
    coalitions = proposal.draw(game, 16, torch.tensor(2), paired=True, shared=False)
    found = proposal.log_without_one(coalitions, *game.marginals(coalitions))
    for player in range(game.players):
        among, left = coalitions.clone(), coalitions.clone()
        among[..., player], left[..., player] = True, False
        both = proposal.log_probability(among).logaddexp(proposal.log_probability(left))
        torch.testing.assert_close(found[..., player], both)
