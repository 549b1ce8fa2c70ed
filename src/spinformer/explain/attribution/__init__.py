"""Attribution methods that a game's own scores are compared with: `method(words)` gives a score for each word."""

from spinformer.explain.attribution.additive import AdditiveExplainer
from spinformer.explain.attribution.base import Attribution
from spinformer.explain.attribution.gradients import GradientTimesInput, IntegratedGradients
from spinformer.explain.attribution.own import AttentionPooling, NeuroGameScores
from spinformer.explain.attribution.pooling import LearntPooling
from spinformer.explain.attribution.shapley import KernelShap, ShapleySampling
from spinformer.explain.attribution.simple import LeaveOneOut, RandomScores

__all__ = [
    "AdditiveExplainer",
    "AttentionPooling",
    "Attribution",
    "GradientTimesInput",
    "IntegratedGradients",
    "KernelShap",
    "LearntPooling",
    "LeaveOneOut",
    "NeuroGameScores",
    "RandomScores",
    "ShapleySampling",
]
