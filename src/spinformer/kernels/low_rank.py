"""Single passes over the factors of low-rank couplings, where plain operations would take several."""

import torch
from torch import Tensor

from spinformer.kernels.factors import Factored, blocks_of
from spinformer.kernels.support import block, rows_of, usable

MOST_JOINED = 256  # coalitions whose rows one program turns into columns


def can_join(values: Tensor, direction: Tensor) -> bool:
    """Whether `joined` takes these."""
    return usable(values, direction) and direction.shape[1] <= MOST_JOINED


def joined(values: Tensor, direction: Tensor) -> Tensor:
    """U = (V, A'): players' vectors V, (B, n, d), beside the turned rows of A, (B, K, n) -> (B, n, d + K)."""
    from spinformer.kernels.device import low_rank as device

    values, direction = values.contiguous(), direction.contiguous()
    (batch, n, d), budget = values.shape, direction.shape[1]
    rows = rows_of(n, min(16, block(n)))
    out = values.new_empty(batch, n, d + budget)
    device.joined[(batch, -(-n // rows))](
        values, direction, out, n, d, budget, d + budget, N=rows, D=min(256, block(d)), K=block(budget)
    )
    return out


def row_squares(factors: Tensor, weights: Tensor) -> Tensor:
    """d_i = sum over r of w_r U_ir^2, (B, n)

    factors: U, (B, n, R); weights: w, (B, R). Its twin: `spinformer.ising.low_rank`.
    """
    from spinformer.kernels.device import low_rank as device

    out = factors.new_empty(factors.shape[:2])
    system = Factored.of([factors, weights, out])
    device.row_squares[(len(out), system.blocks().parts)](
        system.first, system.others, system.weights, out, **system.sizes
    )
    return out


def product_slopes(factors: Tensor, weights: Tensor, x: Tensor) -> list[Tensor]:
    """dU_ir = w_r (g_i c_r + m_i e_r - 2 g_i m_i U_ir),   dw_r = c_r e_r - sum over i of g_i m_i U_ir^2

    with c = U' m and e = U' g, summed over m and g, of which x holds one pair or two: m, g and so on, (B, 2 or 4, n).
    Its twin: `spinformer.ising.low_rank`.
    """
    from spinformer.kernels.device import low_rank as device

    factors, weights, x = factors.contiguous(), weights.contiguous(), x.contiguous()
    (batch, n, rank), several = factors.shape, x.shape[1]
    rows, chunk, parts, width = blocks_of(batch, n, rank)
    shared = factors.new_empty(batch, parts, several, width)
    device.pull_several[(batch, parts)](
        factors, x, shared, n, rank, chunk, parts, W=width, P=several, ROWS=max(rows // 2, 4), num_warps=8
    )
    pulled = shared.sum(1)
    to_factors, partial = torch.empty_like(factors), factors.new_empty(batch, parts, width)
    # a quarter of the rows: a program holds several numbers for each of a tile
    device.product_slopes[(batch, parts)](
        factors, weights, x, pulled, to_factors, partial, n, rank, chunk, parts,
        P=several, ROWS=max(rows // 4, 1), R=width, num_warps=8,
    )  # fmt: skip
    crossed = pulled[..., :rank].unflatten(1, (-1, 2)).prod(2).sum(1)
    return [to_factors, crossed - partial[..., :rank].sum(1)]


def hollow_matrix(factors: Tensor, weights: Tensor, narrow: Tensor) -> Tensor:
    """U diag(w) U' with zeros on the diagonal, (B, n, n)

    factors: the columns of U after the narrow ones, which are in 16 bits and have one weight; weights: of all columns.
    """
    from spinformer.kernels.device import low_rank as device

    factors, weights, narrow = factors.contiguous(), weights.contiguous(), narrow.contiguous()
    (batch, n, split), rank = narrow.shape, weights.shape[1]
    side = min(128, block(n))
    tiles = -(-n // side)
    out = factors.new_empty(batch, n, n)
    device.matrix[(batch, tiles * tiles)](
        factors, narrow, weights, out, n, rank, split, tiles,
        I=side, D=min(64, block(split)), A=block(rank - split), num_warps=8 if side == 128 else 4, num_stages=3,
    )  # fmt: skip
    return out
