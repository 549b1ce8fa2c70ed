"""Single passes over the factors U of couplings J = U diag(w) U' - diag(d), in blocks of rows.

Where A is not 0 the first `split` columns of U are read from `narrow`, which has them in 16 bits; they are at most R.
The others, at most A, are read from U. The sums of one sample over all rows, a number for each column, have W places.
"""

import triton
import triton.language as tl


@triton.jit
def _rows(part, start, chunk, n, ROWS: tl.constexpr):
    """Rows of a block from its row `start` on, and which of them there are."""
    place = start + tl.arange(0, ROWS)
    row = part * chunk + place
    return row, (row < n) & (place < chunk)


@triton.jit
def _tile(couplings, row, n, rank, R: tl.constexpr):
    """A block of rows of U."""
    column = tl.arange(0, R)
    inside = (row < n)[:, None] & (column < rank)[None, :]
    return tl.load(couplings + row.to(tl.int64)[:, None] * rank + column[None, :], inside, 0.0)


@triton.jit
def _narrow(narrow, row, n, split, R: tl.constexpr):
    """The same of its first columns."""
    column = tl.arange(0, R)
    inside = (row < n)[:, None] & (column < split)[None, :]
    return tl.load(narrow + row.to(tl.int64)[:, None] * split + column[None, :], inside, 0.0).to(tl.float32)


@triton.jit
def _others(couplings, row, n, rank, split, A: tl.constexpr):
    """The same of its other columns."""
    column = tl.arange(0, A)
    inside = (row < n)[:, None] & (column < rank - split)[None, :]
    return tl.load(couplings + row.to(tl.int64)[:, None] * rank + split + column[None, :], inside, 0.0)


@triton.jit
def _pull_rows(
    couplings, narrow, x, sums, n, rank, split, chunk, part,
    ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """This block's part of U' x, to where `sums` points. x: the sample's n numbers."""
    sum_ = tl.zeros((R,), tl.float32)
    if A == 0:
        for start in range(0, chunk, ROWS):
            row, known = _rows(part, start, chunk, n, ROWS)
            number = tl.load(x + row, known, 0.0)
            sum_ += tl.sum(_tile(couplings, tl.where(known, row, n), n, rank, R) * number[:, None], 0)
        tl.store(sums + tl.arange(0, R), sum_, tl.arange(0, R) < rank)
    else:
        more = tl.zeros((A,), tl.float32)
        for start in range(0, chunk, ROWS):
            row, known = _rows(part, start, chunk, n, ROWS)
            number, row = tl.load(x + row, known, 0.0), tl.where(known, row, n)
            sum_ += tl.sum(_narrow(narrow, row, n, split, R) * number[:, None], 0)
            more += tl.sum(_others(couplings, row, n, rank, split, A) * number[:, None], 0)
        tl.store(sums + tl.arange(0, R), sum_, tl.arange(0, R) < split)
        tl.store(sums + split + tl.arange(0, A), more, tl.arange(0, A) < rank - split)


@triton.jit
def _push_rows(
    couplings, narrow, inner, images, n, rank, split, chunk, part,
    ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """This block's rows of U c, to the sample's n numbers `images`. inner: c."""
    column = tl.arange(0, R)
    if A == 0:
        c = tl.load(inner + column, column < rank, 0.0)
        for start in range(0, chunk, ROWS):
            row, known = _rows(part, start, chunk, n, ROWS)
            image = tl.sum(_tile(couplings, tl.where(known, row, n), n, rank, R) * c[None, :], 1)
            tl.store(images + row, image, known)
    else:
        other = tl.arange(0, A)
        c = tl.load(inner + column, column < split, 0.0)
        more = tl.load(inner + split + other, other < rank - split, 0.0)
        for start in range(0, chunk, ROWS):
            row, known = _rows(part, start, chunk, n, ROWS)
            there = tl.where(known, row, n)
            image = tl.sum(_narrow(narrow, there, n, split, R) * c[None, :], 1)
            image += tl.sum(_others(couplings, there, n, rank, split, A) * more[None, :], 1)
            tl.store(images + row, image, known)


@triton.jit
def join(
    partial, weights, done, total, rank, parts,
    W: tl.constexpr, C: tl.constexpr, P: tl.constexpr, CHECKED: tl.constexpr,
):  # fmt: skip
    """w_r sum over blocks of their part of (U' x)_r; CHECKED: of samples that are not done."""
    sample = tl.program_id(0).to(tl.int64)
    goes = True
    if CHECKED:
        goes = tl.load(done + sample) == 0
    if goes:
        column = tl.program_id(1) * C + tl.arange(0, C)
        known = column < rank
        sums = tl.zeros((P, C), tl.float32)
        for start in range(0, parts, P):
            part = start + tl.arange(0, P)
            place = (sample * parts + part)[:, None] * W + column[None, :]
            sums += tl.load(partial + place, (part < parts)[:, None] & known[None, :], 0.0)
        weight = tl.load(weights + sample * rank + column, known, 0.0)
        tl.store(total + sample * W + column, tl.sum(sums, 0) * weight, known)


@triton.jit
def pull_vector(
    couplings, narrow, x, partial, n, rank, split, chunk, parts,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """This block's part of U' x."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    couplings += sample * n * rank
    narrow += sample * n * split
    sums = partial + (sample * parts + part) * W
    _pull_rows(couplings, narrow, x + sample * n, sums, n, rank, split, chunk, part, ROWS, R, A)


@triton.jit
def push_vector(
    couplings, narrow, diagonal, x, total, out, n, rank, split, chunk,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """This block's rows of U c - d x."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    couplings += sample * n * rank
    narrow += sample * n * split
    out += sample * n
    _push_rows(couplings, narrow, total + sample * W, out, n, rank, split, chunk, part, ROWS, R, A)
    tl.debug_barrier()
    for start in range(0, chunk, LINE):
        row, known = _rows(part, start, chunk, n, LINE)
        image, number = tl.load(out + row, known, 0.0), tl.load(x + sample * n + row, known, 0.0)
        image -= tl.load(diagonal + sample * n + row, known, 0.0) * number
        tl.debug_barrier()
        tl.store(out + row, image, known)


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
    couplings, narrow, weights, out, n, rank, split, tiles,
    I: tl.constexpr, D: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """A block of U diag(w) U', 0 on the diagonal; the narrow columns have one weight."""
    sample = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) // tiles * I + tl.arange(0, I)
    j = tl.program_id(1) % tiles * I + tl.arange(0, I)
    narrow += sample * n * split
    couplings += sample * n * rank
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
    left = _others(couplings, i, n, rank, split, A) * weight[None, :]
    right = _others(couplings, j, n, rank, split, A)
    sum_ = tl.dot(left, tl.trans(right), sum_ * tl.load(weights), input_precision="tf32x3")
    sum_ = tl.where(i[:, None] == j[None, :], 0.0, sum_)
    tl.store(out + sample * n * n + i[:, None] * n + j[None, :], sum_, (i < n)[:, None] & (j < n)[None, :])


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
