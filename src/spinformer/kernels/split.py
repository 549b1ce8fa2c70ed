"""Products of float32 numbers with players' vectors of 16 bits, by the shape: which way is the fastest."""

import torch
from torch import Tensor

from spinformer._base.products import mixed_product
from spinformer.kernels.support import INTERPRETED, block

LEAST_SPLIT = 256  # columns of vectors from which on a library's product of three parts is faster across them
PROGRAMS = 264  # two for each processor of a large GPU


def _has_kernels(vectors: Tensor) -> bool:
    return vectors.dtype == torch.bfloat16 and not INTERPRETED  # which multiplies numbers of bfloat16 wrongly


def products_across(left: Tensor, vectors: Tensor) -> Tensor:
    """S_k . v_i, (B, K, n); left: S, (B, K, d); vectors: (B, n, d)."""
    (batch, draws, d), n = left.shape, vectors.shape[1]
    if not _has_kernels(vectors) or d >= LEAST_SPLIT:
        return mixed_product(left, vectors.mT)
    from spinformer.kernels.device import split as device

    out, sizes = left.new_empty(batch, draws, n), {"N": min(128, block(n)), "D": min(64, block(d)), "K": 64}
    grid = (batch, -(-n // sizes["N"]), -(-draws // 64))
    device.across[grid](left.contiguous(), vectors, out, n, d, draws, **sizes, num_warps=8)
    return out


def products_along(left: Tensor, vectors: Tensor) -> Tensor:
    """sum over i of W_ki v_i, (B, K, d); left: W, (B, K, n); vectors: (B, n, d)."""
    (batch, draws, n), d = left.shape, vectors.shape[2]
    blocks = -(-d // 64), -(-draws // 64)
    if not _has_kernels(vectors) or batch * blocks[0] * blocks[1] < PROGRAMS:
        return mixed_product(left, vectors)
    from spinformer.kernels.device import split as device

    out, sizes = left.new_empty(batch, draws, d), {"N": min(64, block(n)), "D": min(64, block(d)), "K": 64}
    device.along[(batch, *blocks)](left.contiguous(), vectors, out, n, d, draws, **sizes, num_warps=4)
    return out
