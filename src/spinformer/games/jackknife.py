"""Standard errors of weighted means from independent blocks of draws, and how many blocks carry the weight."""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base.precision import safe_divide, safe_sqrt


class Spread(NamedTuple):
    """Each of the mean's shape. stderr: of the mean; blocks: the effective number of blocks, 1 / sum of W^2.

    terms: how many blocks make up the variance, (sum of c^2)^2 / sum of c^4 with c their terms; infinite where it is 0.
    """

    stderr: Tensor
    blocks: Tensor
    terms: Tensor


def jackknife(delta: Tensor, mean: Tensor, weight: Tensor | None, block: int) -> Spread:
    """var = (b - 1) / b sum over blocks of (R / (1 - W))^2

    over b blocks of `block` draws (dim 1), with W the block's weight and R its weighted residual, widened (see
    `_widening`) so that mean -+ 1.96 stderr is a 95% interval. It is infinite where one draw carries all the weight,
    since one draw does not show how far off it is. weight: adds up to 1, None where all are equal.
    """
    budget = delta.shape[1]
    blocks = -(-budget // block)
    if weight is None:
        residual = _per_block((delta - mean.unsqueeze(1)) / budget, block)
        share = _per_block(torch.full((1, budget), 1 / budget, device=delta.device, dtype=delta.dtype), block)
        share = share.view(1, blocks, *[1] * (delta.dim() - 2))
        single = torch.full_like(mean, blocks == 1, dtype=torch.bool)
    else:
        residual = _per_block(weight * (delta - mean.unsqueeze(1)), block)
        share = _per_block(weight, block)
        single = 1 / weight.square().sum(1) < 1 + 1e-3
        single = single if blocks > 1 else torch.ones_like(single)
    tiny = torch.finfo(delta.dtype).eps
    change = residual / (1 - share).clamp_min(tiny)  # by how much the mean moves when a block is left out
    stderr = ((blocks - 1) / blocks * change.square().sum(1)).sqrt() * _widening(change)
    effective = (1 / share.square().sum(1)).expand_as(mean)
    size = torch.linalg.vector_norm(change, dim=1)
    unit = safe_divide(change, size.unsqueeze(1).expand_as(change))
    return Spread(stderr.masked_fill(single, torch.inf), effective, 1 / (unit**4).sum(1))


def _widening(change: Tensor) -> Tensor:
    """How much wider than the normal one a 95% interval must be, when only these b terms are known.

    Where few terms make up most of the variance, two effects widen it, and the larger one counts. The variance itself
    is uncertain, with nu = 2 b / (k - 1) degrees of freedom for kurtosis k: Student's interval is wider by
    (z^2 + 1) / (4 nu). And the studentised mean is skewed: for skewness g by g^2 (z^4 + 2 z^2 - 3) / (18 b) (the
    Edgeworth expansion, Hall 1992). With z = 1.96 these are 1.21 / nu and 1.08 g^2 / b.
    """
    blocks = change.shape[1]
    total = change.square().sum(1, keepdim=True)
    unit = safe_divide(change, safe_sqrt(total).expand_as(change))  # squares sum to 1
    kurtosis = blocks * (unit**4).sum(1)
    skewness = blocks * (unit**3).sum(1).square()  # g^2
    student = 1.21 * (kurtosis - 1).clamp_min(0) / 2
    return 1 + torch.maximum(student, 1.21 + 1.08 * skewness) / blocks


def _per_block(terms: Tensor, block: int) -> Tensor:
    """Sums over consecutive blocks along dim 1; a short last block stands alone."""
    if block == 1:
        return terms
    missing = -terms.shape[1] % block
    if missing:
        terms = torch.cat([terms, terms.new_zeros(terms.shape[0], missing, *terms.shape[2:])], 1)
    return terms.unflatten(1, (-1, block)).sum(2)
