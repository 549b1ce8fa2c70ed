"""Single passes over the factors U of couplings J = U diag(w) U' - diag(d), in blocks of rows."""

import triton
import triton.language as tl

from spinformer.kernels.device.factors import _rows, _tile


@triton.jit
def row_squares(couplings, weights, out, n, rank, chunk, ROWS: tl.constexpr, R: tl.constexpr):
    """d_i = sum over r of w_r U_ir^2."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    couplings += sample * n * rank
    column = tl.arange(0, R)
    weight = tl.load(weights + sample * rank + column, column < rank, 0.0)
    for start in range(0, chunk, ROWS):
        row, known = _rows(part, start, chunk, n, ROWS)
        tile = _tile(couplings, tl.where(known, row, n), n, rank, R)
        tl.store(out + sample * n + row, tl.sum(tile * tile * weight[None, :], 1), known)


@triton.jit
def product_slopes(
    couplings, weights, slope, state, inner, outer, to_couplings, partial, n, rank, chunk, parts,
    ROWS: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """w_r (g_i c_r + m_i e_r - 2 g_i m_i U_ir), and this block's part of sum over i of g_i m_i U_ir^2."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    couplings += sample * n * rank
    to_couplings += sample * n * rank
    column = tl.arange(0, R)
    there = column < rank
    weight = tl.load(weights + sample * rank + column, there, 0.0)
    c = weight * tl.load(inner + sample * rank + column, there, 0.0)
    e = weight * tl.load(outer + sample * rank + column, there, 0.0)
    sum_ = tl.zeros((R,), tl.float32)
    for start in range(0, chunk, ROWS):
        row, known = _rows(part, start, chunk, n, ROWS)
        g, m = tl.load(slope + sample * n + row, known, 0.0), tl.load(state + sample * n + row, known, 0.0)
        tile = _tile(couplings, tl.where(known, row, n), n, rank, R)
        crossed = (g * m)[:, None] * tile
        sum_ += tl.sum(crossed * tile, 0)
        out = g[:, None] * c[None, :] + m[:, None] * e[None, :] - 2 * crossed * weight[None, :]
        place = row.to(tl.int64)[:, None] * rank + column[None, :]
        tl.store(to_couplings + place, out, known[:, None] & there[None, :])
    tl.store(partial + (sample * parts + part) * R + column, sum_)


@triton.jit
def joined(values, direction, out, n, d, budget, rank, N: tl.constexpr, D: tl.constexpr, K: tl.constexpr):
    """A block of rows of U: players' vectors, then their lengths along each coalition's sum."""
    game = tl.program_id(0).to(tl.int64)
    i, column, k = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, D), tl.arange(0, K)
    known = i < n
    row = (game * n + i)[:, None]
    for start in range(0, d, D):
        place = start + column
        keep = known[:, None] & (place < d)[None, :]
        tile = tl.load(values + row * d + place[None, :], keep, 0.0)
        tl.store(out + row * rank + place[None, :], tile, keep)
    keep = known[:, None] & (k < budget)[None, :]
    tile = tl.load(direction + (game * budget + k)[None, :] * n + i[:, None], keep, 0.0)
    tl.store(out + row * rank + d + k[None, :], tile, keep)
