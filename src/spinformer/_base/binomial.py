"""Binomial coefficients and the number of heads among fair coins, for tensors of any size of numbers."""

import math

import torch
from torch import Tensor


def log_binomial(others: Tensor, size: Tensor) -> Tensor:
    """log binom(others, size) in float64; -inf outside 0 <= size <= others."""
    m, s = others.double(), size.double()
    inside = (s >= 0) & (s <= m)
    s = torch.where(inside, s, 0.0)
    value = torch.lgamma(m + 1) - torch.lgamma(s + 1) - torch.lgamma((m - s).clamp_min(0) + 1)
    return torch.where(inside, value, -torch.inf)


def fair_coins(coins: Tensor, heads: Tensor) -> Tensor:
    """binom(coins, heads) / 2^coins, in float64."""
    return (log_binomial(coins, heads) + coins * math.log(0.5)).exp()
