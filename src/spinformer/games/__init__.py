"""Cooperative games on tensors: exact values, estimates with standard errors, and interactions in low rank."""

from spinformer.games.estimate import MIN_ESS, Estimate, EstimatorName, estimate_values
from spinformer.games.exact import MAX_PLAYERS, exact_values
from spinformer.games.game import Game, TableGame
from spinformer.games.indices import INDICES, Index, Weighting
from spinformer.games.lowrank import estimate_low_rank, low_rank_from_sums
from spinformer.games.named_proposals import ProposalName, make_proposal
from spinformer.games.norm import NormGame
from spinformer.games.one_pass import NormValues, estimate_norm_values
from spinformer.games.quadrature import estimate_all
from spinformer.games.sums import SumGame
from spinformer.games.values import GameValues

__all__ = [
    "INDICES",
    "MAX_PLAYERS",
    "MIN_ESS",
    "Estimate",
    "EstimatorName",
    "Game",
    "GameValues",
    "Index",
    "NormGame",
    "NormValues",
    "ProposalName",
    "SumGame",
    "TableGame",
    "Weighting",
    "estimate_all",
    "estimate_low_rank",
    "estimate_norm_values",
    "estimate_values",
    "exact_values",
    "low_rank_from_sums",
    "make_proposal",
]
