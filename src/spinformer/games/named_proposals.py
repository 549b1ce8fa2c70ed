"""Proposals by name, for one game and one temperature."""

from typing import Literal

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.games.annealed import GROUP, Annealed
from spinformer.games.game import Game
from spinformer.games.indices import INDICES
from spinformer.games.proposals import Proposal, SizeWeighted, Tilted

ProposalName = Literal["uniform", "tilted", "annealed"]

PROPOSALS: tuple[ProposalName, ...] = ("uniform", "tilted", "annealed")


def make_proposal(
    name: ProposalName, game: Game, index: str, temperature: float | Tensor, *, group: int = GROUP
) -> Proposal:
    """The proposal of this name for a game; temperature: a number or (B,).

    index: whose contexts the uniform proposal draws. group: draws of the annealed proposal that are resampled together;
    all of them where no standard errors are needed.
    """
    checks.choice("proposal", name, PROPOSALS)
    checks.instance("game", game, Game)
    checks.positive("temperature", temperature)
    checks.each("temperature", temperature, game.batch)
    checks.at_least("group", group, 1)
    gamma = torch.as_tensor(temperature, dtype=game.dtype, device=game.device).expand(game.batch)
    return proposal_of(name, game, index, gamma, group)


def proposal_of(name: ProposalName, game: Game, index: str, temperature: Tensor, group: int = GROUP) -> Proposal:
    """`make_proposal` of what was checked before; temperature: (B,)."""
    known = INDICES[index]
    source: Proposal
    if name == "uniform":
        source = SizeWeighted(index if known.bias is not None else "SV", game.counts())
    else:
        source = Tilted(game, temperature) if name == "tilted" else Annealed(game, temperature, group)
    source.sizes = (game.batch, game.players)
    return source


def check_proposal(proposal: ProposalName | Proposal, game: Game) -> None:
    """A known name, or an object for games of these sizes."""
    if not isinstance(proposal, Proposal):
        checks.choice("proposal", proposal, PROPOSALS)
    elif proposal.sizes not in (None, (game.batch, game.players)):
        raise ValueError(
            f"proposal must be for {game.batch} games of {game.players} players; it is for {proposal.sizes[0]} of "
            f"{proposal.sizes[1]}"
        )
