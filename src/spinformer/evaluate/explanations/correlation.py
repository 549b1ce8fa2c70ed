"""Correlations of numbers with numbers, one row at a time; everything is computed in float64 on the CPU.

A correlation is NaN where it is not defined: fewer than MIN_COUNT numbers, or one side the same throughout.
"""

import math
from typing import Literal

import torch
from torch import Tensor

Kind = Literal["spearman", "pearson"]
KINDS: tuple[Kind, ...] = ("spearman", "pearson")

MIN_COUNT = 3  # two numbers always correlate perfectly, one way or the other


def ranks(values: Tensor) -> Tensor:
    """1 + (how many are smaller) + (how many others are equal) / 2: ranks from 1, the mean of them for equals."""
    _, group, counts = values.unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0).double() - (counts.double() - 1) / 2)[group]


def correlation(first: Tensor, second: Tensor, kind: Kind) -> float:
    """cov(a, b) / sqrt(var(a) var(b)) of two rows of numbers (Pearson), or of their ranks (Spearman)."""
    a, b = first.detach().double().cpu(), second.detach().double().cpu()
    if len(a) < MIN_COUNT or _constant(a) or _constant(b):
        return math.nan
    if kind == "spearman":
        a, b = ranks(a), ranks(b)
    a, b = a - a.mean(), b - b.mean()
    return float((a @ b / (a.norm() * b.norm())).clamp(-1, 1))


def correlations(first: Tensor, second: Tensor, mask: Tensor, kind: Kind) -> Tensor:
    """`correlation` of each row of `first` with that of `second`, (B, W) each, where the mask is true: (B,)."""
    a, b, real = first.detach().double().cpu(), second.detach().double().cpu(), mask.cpu()
    constant = [
        side.masked_fill(~real, -torch.inf).amax(1) == side.masked_fill(~real, torch.inf).amin(1) for side in (a, b)
    ]
    if kind == "spearman":
        a, b = _ranks(a, real), _ranks(b, real)
    count = real.sum(1)
    a, b = (side.masked_fill(~real, 0.0) for side in (a, b))
    a, b = ((side - (side.sum(1) / count)[:, None]) * real for side in (a, b))
    result = ((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))).clamp(-1, 1)
    return result.masked_fill((count < MIN_COUNT) | constant[0] | constant[1], torch.nan)


def _ranks(values: Tensor, mask: Tensor) -> Tensor:
    """`ranks` of each row, (B, W), among the numbers where the mask is true, by comparing every pair."""
    others = mask[:, None]
    below = ((values[:, None] < values[:, :, None]) & others).sum(2)
    equal = ((values[:, None] == values[:, :, None]) & others).sum(2)
    return below + (equal + 1).double() / 2


def r_squared(predicted: Tensor, real: Tensor, about: Tensor) -> float:
    """1 - sum (real - predicted)² / sum (real - about)²; NaN where nothing varies about `about`."""
    total = float((real - about).square().sum())
    return 1 - float((real - predicted).square().sum()) / total if total > 0 else math.nan


def _constant(values: Tensor) -> bool:
    return bool(values.max() == values.min())
