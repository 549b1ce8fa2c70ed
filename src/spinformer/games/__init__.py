"""Cooperative games on tensors: exact values, estimates with error bars, and their low-rank form."""

from spinformer.games.estimate import MIN_ESS, Estimate, EstimatorName, ProposalName, estimate_values, make_proposal
from spinformer.games.exact import MAX_PLAYERS, exact_values
from spinformer.games.game import Game, TableGame
from spinformer.games.indices import Index, Weighting
from spinformer.games.joint import estimate_joint
from spinformer.games.lowrank import estimate_low_rank, low_rank_interactions, low_rank_of
from spinformer.games.norm import NormGame
from spinformer.games.sums import SumGame
from spinformer.games.surveying import Survey, survey

__all__ = [
    "MAX_PLAYERS",
    "MIN_ESS",
    "Estimate",
    "EstimatorName",
    "Game",
    "Index",
    "NormGame",
    "ProposalName",
    "SumGame",
    "Survey",
    "TableGame",
    "Weighting",
    "estimate_joint",
    "estimate_low_rank",
    "estimate_values",
    "exact_values",
    "low_rank_interactions",
    "low_rank_of",
    "make_proposal",
    "survey",
]
