"""Ising models on tensors: exact sums, a sampler, and mean-field equations with implicit gradients."""

from spinformer.ising.couplings import Couplings, DenseCouplings, LowRankCouplings
from spinformer.ising.exact import MAX_SPINS, exact_magnetization, free_energy, glauber, log_partition
from spinformer.ising.mean_field import mean_field
from spinformer.ising.model import Ising
from spinformer.ising.steps import MeanField

__all__ = [
    "MAX_SPINS",
    "Couplings",
    "DenseCouplings",
    "Ising",
    "LowRankCouplings",
    "MeanField",
    "exact_magnetization",
    "free_energy",
    "glauber",
    "log_partition",
    "mean_field",
]
