"""Single passes over the factors U of couplings J = U diag(w) U' - diag(d), in blocks of rows.

narrow: the first `split` columns of U in 16 bits. The sums of one sample over all rows, a number for each column, have
W places.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.passes import _at, _image, _pieces, _rows, _tiles


@triton.jit
def _tile(couplings, row, n, rank, R: tl.constexpr):
    """A block of rows of U."""
    column = tl.arange(0, R)
    inside = (row < n)[:, None] & (column < rank)[None, :]
    return tl.load(couplings + row.to(tl.int64)[:, None] * rank + column[None, :], inside, 0.0)


@triton.jit
def _squares(tiles, P: tl.constexpr, A: tl.constexpr):
    """U_ir^2 of these rows."""
    squares = ()
    for k in tl.static_range(P):
        squares += (tiles[k] * tiles[k],)
    if A > 0:
        squares += (tiles[P] * tiles[P],)
    return squares


@triton.jit
def row_squares(
    first, others, weights, out, n, rank, split, stride, chunk, parts,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """d_i = sum over r of w_r U_ir^2."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first += sample * n * split
    others += sample * n * stride * UNIT
    weight = _pieces(weights + sample * rank, rank, split, C, P, A)
    for start in tl.range(0, chunk, ROWS, num_stages=STAGES):
        at = _at(part, start, chunk, 0, ROWS)
        row = at + tl.arange(0, ROWS)
        tiles = _tiles(first, others, at, n, rank, split, stride, ROWS, C, P, A, UNIT)
        tl.store(out + sample * n + row, _image(_squares(tiles, P, A), weight, P, A), row < n)


@triton.jit
def pull_several(
    couplings, x, partial, n, rank, chunk, parts, W: tl.constexpr, P: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """This block's part of U' x of P vectors, two or four, (B, P, n), to (B, parts, P, W)."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    couplings += sample * n * rank
    x += sample * P * n
    zero, column = tl.zeros((W,), tl.float32), tl.arange(0, W)
    sum0, sum1, sum2, sum3 = zero, zero, zero, zero
    for start in range(0, chunk, ROWS):
        row, known = _rows(part, start, chunk, n, ROWS)
        tile = _tile(couplings, tl.where(known, row, n), n, rank, W)
        sum0 += tl.sum(tile * tl.load(x + row, known, 0.0)[:, None], 0)
        sum1 += tl.sum(tile * tl.load(x + n + row, known, 0.0)[:, None], 0)
        if P == 4:
            sum2 += tl.sum(tile * tl.load(x + 2 * n + row, known, 0.0)[:, None], 0)
            sum3 += tl.sum(tile * tl.load(x + 3 * n + row, known, 0.0)[:, None], 0)
    partial += (sample * parts + part) * P * W
    tl.store(partial + column, sum0)
    tl.store(partial + W + column, sum1)
    if P == 4:
        tl.store(partial + 2 * W + column, sum2)
        tl.store(partial + 3 * W + column, sum3)


@triton.jit
def product_slopes(
    couplings, weights, x, pulled, to_couplings, partial, n, rank, chunk, parts,
    P: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """The sum over m and g, of which x holds one pair or two, (B, P, n), of w_r (g_i c_r + m_i e_r - 2 g_i m_i U_ir)

    And this block's part of sum over i of g_i m_i U_ir^2. pulled: U' x, (B, P, R): c and e.
    """
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    couplings += sample * n * rank
    to_couplings += sample * n * rank
    x += sample * P * n
    pulled += sample * P * R
    column = tl.arange(0, R)
    there = column < rank
    weight = tl.load(weights + sample * rank + column, there, 0.0)
    c, e = weight * tl.load(pulled + column, there, 0.0), weight * tl.load(pulled + R + column, there, 0.0)
    if P == 4:
        c_more = weight * tl.load(pulled + 2 * R + column, there, 0.0)
        e_more = weight * tl.load(pulled + 3 * R + column, there, 0.0)
    sum_ = tl.zeros((R,), tl.float32)
    for start in range(0, chunk, ROWS):
        row, known = _rows(part, start, chunk, n, ROWS)
        m, g = tl.load(x + row, known, 0.0), tl.load(x + n + row, known, 0.0)
        tile = _tile(couplings, tl.where(known, row, n), n, rank, R)
        both = g * m
        out = g[:, None] * c[None, :] + m[:, None] * e[None, :]
        if P == 4:
            m, g = tl.load(x + 2 * n + row, known, 0.0), tl.load(x + 3 * n + row, known, 0.0)
            both += g * m
            out += g[:, None] * c_more[None, :] + m[:, None] * e_more[None, :]
        crossed = both[:, None] * tile
        sum_ += tl.sum(crossed * tile, 0)
        out -= 2 * crossed * weight[None, :]
        place = row.to(tl.int64)[:, None] * rank + column[None, :]
        tl.store(to_couplings + place, out, known[:, None] & there[None, :])
    tl.store(partial + (sample * parts + part) * R + column, sum_)


@triton.jit
def matrix(
    others, narrow, weights, out, n, rank, split, tiles,
    I: tl.constexpr, D: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """A block of U diag(w) U' and its mirror image, 0 on the diagonal; the narrow columns have one weight."""
    sample = tl.program_id(0).to(tl.int64)
    above, beside = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    if above > beside:
        return
    i, j = above * I + tl.arange(0, I), beside * I + tl.arange(0, I)
    narrow += sample * n * split
    others += sample * n * (rank - split)
    weights += sample * rank
    sum_ = tl.zeros((I, I), tl.float32)
    for start in range(0, split, D):
        column = start + tl.arange(0, D)
        keep = (column < split)[None, :]
        left = tl.load(narrow + i[:, None] * split + column[None, :], (i < n)[:, None] & keep, 0.0)
        right = tl.load(narrow + j[:, None] * split + column[None, :], (j < n)[:, None] & keep, 0.0)
        sum_ = tl.dot(left, tl.trans(right), sum_)
    k = tl.arange(0, A)
    weight = tl.load(weights + split + k, k < rank - split, 0.0)
    left = _tile(others, i, n, rank - split, A) * weight[None, :]
    right = _tile(others, j, n, rank - split, A)
    sum_ = tl.dot(left, tl.trans(right), sum_ * tl.load(weights), input_precision="tf32x3")
    sum_ = tl.where(i[:, None] == j[None, :], 0.0, sum_)
    out += sample * n * n
    tl.store(out + i[:, None] * n + j[None, :], sum_, (i < n)[:, None] & (j < n)[None, :])
    if above < beside:
        tl.store(out + j[:, None] * n + i[None, :], tl.trans(sum_), (j < n)[:, None] & (i < n)[None, :])


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
