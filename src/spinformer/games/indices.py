"""The four indices and the two weightings, as distributions over the contexts of a player or a pair.

With T the coalition around player i (or the pair i, j) and m = n - 1 (or n - 2) the number of others:

    BV, BII   uniform weighting   P(T) = 2^-m
    SV, SII   uniform weighting   P(T) = 1 / ((m + 1) binom(m, |T|))
    any       gibbs weighting     P(T) ~ exp(v(T) / temperature)          (Eqs. 31-36)

The last line is what the paper's estimators converge to: Eq. 32 divides by the probability of the proposal, so
the permutation measure of Eq. 34 cancels, and under Gibbs weights SV equals BV and SII equals BII.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from spinformer import checks

Index = Literal["SV", "BV", "SII", "BII"]
Weighting = Literal["uniform", "gibbs"]

INDICES: tuple[Index, ...] = ("SV", "BV", "SII", "BII")
WEIGHTINGS: tuple[Weighting, ...] = ("uniform", "gibbs")


def is_pairwise(index: str) -> bool:
    """Whether the index values pairs of players."""
    return index in ("SII", "BII")


def is_shapley(index: str) -> bool:
    """Whether the index takes every size of coalition as equally likely."""
    return index in ("SV", "SII")


def check(index: str, weighting: str, temperature: float | Tensor) -> None:
    """The names are known and the temperature is positive."""
    checks.choice("index", index, INDICES)
    checks.choice("weighting", weighting, WEIGHTINGS)
    checks.positive("temperature", temperature)


def log_binomial(others: Tensor, size: Tensor) -> Tensor:
    """log binom(others, size) in float64; -inf outside 0 <= size <= others."""
    m, s = others.double(), size.double()
    inside = (s >= 0) & (s <= m)
    s = torch.where(inside, s, 0.0)
    value = torch.lgamma(m + 1) - torch.lgamma(s + 1) - torch.lgamma((m - s).clamp_min(0) + 1)
    return torch.where(inside, value, -torch.inf)


def log_size_weight(index: str, others: Tensor, size: Tensor) -> Tensor:
    """log P(T) under the uniform weighting, up to a constant, for |T| = `size` among `others` players."""
    if is_shapley(index):
        return -log_binomial(others, size.minimum(others).clamp_min(0))
    return torch.zeros_like(size, dtype=torch.float64)


def size_distribution(index: str, others: Tensor, width: int) -> Tensor:
    """P(|T| = t) under the uniform weighting for t = 0 .. width - 1: (B, width), float64, 0 beyond `others`."""
    size = torch.arange(width, dtype=torch.float64, device=others.device)
    m = others.double()[:, None]
    if is_shapley(index):
        return (size <= m) / (m + 1)
    return (log_binomial(m, size) + m * math.log(0.5)).exp()
