"""Products with the couplings of a sample in one program.

Couplings, a symmetric matrix, come in one of four forms: RESIDENT, a matrix that stays on chip; STREAMED, a matrix of
which one half is read again for every product; FACTORS, J = U diag(w) U' off the diagonal, read twice for every
product; NARROW, the same where the first `split` columns of U are numbers of 16 bits, so few that a cache keeps them.
"""

import triton
import triton.language as tl

RESIDENT = tl.constexpr(0)
STREAMED = tl.constexpr(1)
FACTORS = tl.constexpr(2)
NARROW = tl.constexpr(3)
NEAR = tl.constexpr(4)  # numbers that one instruction reads: blocks of so many spins along the diagonal stay on chip
TALL = tl.constexpr(64)  # rows of narrow factors that are read at once


@triton.jit
def _lines(ROWS: tl.constexpr, FORM: tl.constexpr):
    """How many times n numbers a sample needs as scratch: `scratch_lines` of `spinformer.kernels.spins`."""
    if FORM == STREAMED:
        return 3
    elif FORM == NARROW:
        return 2 + ROWS
    else:
        return 1


@triton.jit
def _matrix(
    couplings, narrow, scratch, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """What `_product` needs of the couplings, in two parts

    STREAMED: the blocks of NEAR spins along the diagonal. NARROW: where the narrow columns are, and a copy of the
    others, whose rows lie close together.
    """
    i = tl.arange(0, N)
    if FORM == RESIDENT:
        inside = (i < n)[:, None] & (i < n)[None, :]
        return tl.load(couplings + i[:, None] * n + i[None, :], inside, 0.0), 0.0
    elif FORM == STREAMED:
        j = (i // NEAR * NEAR)[:, None] + tl.arange(0, NEAR)[None, :]
        return tl.load(couplings + i[:, None] * n + j, (i < n)[:, None] & (j < n), 0.0), 0.0
    elif FORM == NARROW:
        k, others = tl.arange(0, ROWS), scratch + 2 * n
        for start in range(0, n, TALL):
            row = start + tl.arange(0, TALL)
            inside = (row < n)[:, None] & (k < rank - split)[None, :]
            tile = tl.load(couplings + row[:, None] * (rank - split) + k[None, :], inside, 0.0)
            tl.store(others + row[:, None] * ROWS + k[None, :], tile, (row < n)[:, None])
        tl.debug_barrier()
        return narrow, others
    else:
        return 0.0, 0.0


@triton.jit
def _strip(couplings, start, edge, place, n, ROWS: tl.constexpr):
    """Some rows of a matrix, as far as the block of NEAR columns before the diagonal."""
    row = start + tl.arange(0, ROWS)[:, None, None]
    return tl.load(couplings + row * n + place[None, :, :], (row < n) & (edge[None, :, :] <= row), 0.0)


@triton.jit
def _half_product(
    blocks, couplings, scratch, x, n, N: tl.constexpr, ROWS: tl.constexpr, LARGEST: tl.constexpr
):  # fmt: skip
    """J x of a symmetric matrix, reading J_ij for j < i; and the largest |J_ij|, if LARGEST.

    J_ij x_j is summed along a row, by one warp, and J_ij x_i down the columns: no warp waits for another until the end.
    Two strips of rows are on their way while a third is used.
    """
    COLUMNS: tl.constexpr = N if N < 128 else 128
    tl.static_assert(N // ROWS <= COLUMNS, "more strips than places for their sums")
    i = tl.arange(0, N)
    tl.store(scratch + i, x, i < n)
    tl.debug_barrier()
    near = (i // NEAR * NEAR)[:, None] + tl.arange(0, NEAR)[None, :]
    result = tl.sum(blocks * tl.load(scratch + near, near < n, 0.0), 1)
    place = tl.arange(0, N // COLUMNS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    edge = (place // NEAR + 1) * NEAR
    right = tl.load(scratch + place, place < n, 0.0)[None, :, :]
    down = tl.zeros((ROWS, N // COLUMNS, COLUMNS), tl.float32)
    most = tl.zeros((ROWS, N // COLUMNS, COLUMNS), tl.float32)
    ahead = tl.zeros((ROWS, COLUMNS), tl.float32)  # sums along the rows of strip t in column t
    tile = _strip(couplings, 0, edge, place, n, ROWS)
    second = _strip(couplings, ROWS, edge, place, n, ROWS)
    for start in tl.range(0, n, ROWS, loop_unroll_factor=3):
        third = _strip(couplings, start + 2 * ROWS, edge, place, n, ROWS)
        row = start + tl.arange(0, ROWS)
        left = tl.load(scratch + row, row < n, 0.0)
        across = tl.sum(tl.sum(tile * right, 1), 1)
        ahead = tl.where((tl.arange(0, COLUMNS) == start // ROWS)[None, :], across[:, None], ahead)
        down += tile * left[:, None, None]
        if LARGEST:
            most = tl.maximum(most, tl.abs(tile))
        tile, second = second, third
    row = tl.arange(0, ROWS)[:, None] + tl.arange(0, COLUMNS)[None, :] * ROWS
    tl.store(scratch + n + row, ahead, row < n)
    tl.store(scratch + 2 * n + place, tl.sum(down, 0), place < n)
    tl.debug_barrier()
    result += tl.load(scratch + n + i, i < n, 0.0) + tl.load(scratch + 2 * n + i, i < n, 0.0)
    size = 0.0
    if LARGEST:
        size = tl.maximum(tl.max(tl.max(tl.max(most, 2), 1), 0), tl.max(tl.max(tl.abs(blocks), 1), 0))
    return result, size


@triton.jit
def _narrow_product(
    narrow, others, weights, diagonal, scratch, x, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """J x from factors of which the first columns are narrow."""
    i, column, k = tl.arange(0, N), tl.arange(0, R), tl.arange(0, ROWS)
    tl.store(scratch + i, x, i < n)
    tl.debug_barrier()
    first, more = tl.zeros((TALL, R), tl.float32), tl.zeros((TALL, ROWS), tl.float32)
    for start in range(0, n, TALL):
        row = start + tl.arange(0, TALL)
        inside = (row < n)[:, None]
        spin = tl.load(scratch + row, row < n, 0.0)[:, None]
        tile = tl.load(narrow + row[:, None] * split + column[None, :], inside & (column < split)[None, :], 0.0)
        first += tile.to(tl.float32) * spin
        more += tl.load(others + row[:, None] * ROWS + k[None, :], inside, 0.0) * spin
    inner = tl.sum(first, 0) * tl.load(weights + column, column < split, 0.0)
    rest = tl.sum(more, 0) * tl.load(weights + split + k, k < rank - split, 0.0)
    for start in range(0, n, TALL):
        row = start + tl.arange(0, TALL)
        inside = (row < n)[:, None]
        tile = tl.load(narrow + row[:, None] * split + column[None, :], inside & (column < split)[None, :], 0.0)
        image = tl.sum(tile.to(tl.float32) * inner[None, :], 1)
        tile = tl.load(others + row[:, None] * ROWS + k[None, :], inside, 0.0)
        tl.store(scratch + n + row, image + tl.sum(tile * rest[None, :], 1), row < n)
    tl.debug_barrier()
    return tl.load(scratch + n + i, i < n, 0.0) - tl.load(diagonal + i, i < n, 0.0) * x


@triton.jit
def _product(
    matrix, extra, couplings, weights, diagonal, scratch, x, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """J x. scratch: room for `_lines` times n numbers, this sample's own."""
    i = tl.arange(0, N)
    if FORM == RESIDENT:
        return tl.sum(matrix * x[:, None], 0)
    elif FORM == STREAMED:
        image, _ = _half_product(matrix, couplings, scratch, x, n, N, ROWS, False)
        return image
    elif FORM == NARROW:
        return _narrow_product(matrix, extra, weights, diagonal, scratch, x, n, rank, split, N, R, ROWS)
    else:
        column = tl.arange(0, R)
        tl.store(scratch + i, x, i < n)
        tl.debug_barrier()
        inner = tl.zeros((R,), tl.float32)
        for start in range(0, n, ROWS):
            row = start + tl.arange(0, ROWS)
            inside = (row < n)[:, None] & (column < rank)[None, :]
            tile = tl.load(couplings + row[:, None] * rank + column[None, :], inside, 0.0)
            inner += tl.sum(tile * tl.load(scratch + row, row < n, 0.0)[:, None], 0)
        inner *= tl.load(weights + column, column < rank, 0.0)
        tl.debug_barrier()
        for start in range(0, n, ROWS):
            row = start + tl.arange(0, ROWS)
            inside = (row < n)[:, None] & (column < rank)[None, :]
            tile = tl.load(couplings + row[:, None] * rank + column[None, :], inside, 0.0)
            tl.store(scratch + row, tl.sum(tile * inner[None, :], 1), row < n)
        tl.debug_barrier()
        result = tl.load(scratch + i, i < n, 0.0) - tl.load(diagonal + i, i < n, 0.0) * x
        tl.debug_barrier()
        return result
