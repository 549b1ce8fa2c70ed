"""Interactions of all pairs by the operator of `spinformer.kernels.pairs`, where there is one for them."""

import torch
from torch import Tensor

from spinformer.games.game import Game
from spinformer.games.norm import NormGame
from spinformer.games.proposals import Proposal, SizeWeighted
from spinformer.kernels.pairs import average_pairs, can_average_pairs


def fused_pairs(
    game: Game, coalitions: Tensor, proposal: Proposal, weighting: str, cold: Tensor | None
) -> tuple[Tensor, Tensor] | None:
    """Mean interactions and their effective sample size, (B, n, n), under equal or Gibbs weights over fair coins

    cold: inverse temperature, (B,), None for equal weights. None where the operator is not for these.
    """
    fair = isinstance(proposal, SizeWeighted) and proposal.index.name == "BII"
    if not isinstance(game, NormGame) or game.activation not in ("identity", "relu"):
        return None
    if (cold is not None and not (fair and weighting == "gibbs")) or not can_average_pairs(
        game.values, coalitions.shape[1]
    ):
        return None
    sums = game.sums(coalitions)
    level = torch.zeros_like(game.scale) if cold is None else game.scale * cold
    mean, _, ess = average_pairs(game.values, sums.products, coalitions, sums.square.squeeze(-1), game.squares, level)
    return mean * game.scale[:, None, None], ess
