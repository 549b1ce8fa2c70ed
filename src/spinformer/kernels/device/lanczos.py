"""Lanczos' method for couplings J = U diag(w) U' - diag(d) too large for one program: one pass over U for each step.

The pass makes y = J x of the vector x found last and, from the same tiles, U' y. The next vector is what y has beyond
the basis, (y - sum over k of a_k x_k) / length, and U' of it the same combination of U' y and the U' x_k. Where it is
so short that rounding would show, which goes on from vector to vector, U' of it is made anew.

basis: the vectors x_k so far, (B, SLOTS, n); pulls: U' x_k, (B, SLOTS, W); found, more: the blocks' parts of a_k and,
behind them, of the square of what they belong to, (B, parts, 2 SLOTS); growth: how much larger than rounding the error
of U' x_k may be, 0 where it was made anew, (B, SLOTS).
"""

import triton
import triton.language as tl

from spinformer.kernels.device.leading import _top
from spinformer.kernels.device.passes import (
    _at,
    _gathered,
    _image,
    _joined,
    _nothing,
    _pieces,
    _pull_rows,
    _rows,
    _store_sums,
    _tiles,
)
from spinformer.kernels.device.spins import SLOTS, TINY

MOST_GROWTH = tl.constexpr(64.0)
DOTS = tl.constexpr(64)  # blocks whose parts are added at once


@triton.jit
def _store_dots(basis, x, spot, n, step, part, chunk, LINE: tl.constexpr):
    """This block's part of x . x_k for all vectors of the basis, then of |x|^2, to where `spot` points."""
    slot = tl.arange(0, SLOTS)
    along, square = tl.zeros((SLOTS, LINE), tl.float32), tl.zeros((LINE,), tl.float32)
    for start in range(0, chunk, LINE):
        row, known = _rows(part, start, chunk, n, LINE)
        number = tl.load(x + row, known, 0.0)
        there = (slot <= step)[:, None] & known[None, :]
        along += tl.load(basis + slot[:, None] * n + row[None, :], there, 0.0) * number[None, :]
        square += number * number
    tl.store(spot + slot, tl.sum(along, 1))
    tl.store(spot + SLOTS, tl.sum(square, 0))


@triton.jit
def _dots(found, parts):
    """The sums over blocks of what `_store_dots` left."""
    slot = tl.arange(0, SLOTS)
    along, square = tl.zeros((DOTS, SLOTS), tl.float32), tl.zeros((DOTS,), tl.float32)
    for start in range(0, parts, DOTS):
        part = start + tl.arange(0, DOTS)
        spot = found + part * 2 * SLOTS
        along += tl.load(spot[:, None] + slot[None, :], (part < parts)[:, None], 0.0)
        square += tl.load(spot + SLOTS, part < parts, 0.0)
    return tl.sum(along, 0), tl.sum(square, 0)


@triton.jit(do_not_specialize=["step"])
def image(
    first, others, diagonal, inverse_unit, total, basis, out, partial, found,
    n, rank, split, stride, chunk, parts, step, FIRST: tl.constexpr, LAST: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """y = J x of the vector found last, this block's part of U' y, of y . x_k and of |y|^2. total: w U' x.

    FIRST: x = 1, and |y| + 1e-3 in place of y. LAST: without U' y.
    """
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first += sample * n * split
    others += sample * n * stride * UNIT
    diagonal += sample * n
    basis += sample * SLOTS * n
    out += sample * n
    unit = tl.load(inverse_unit + sample)
    c = _pieces(total + sample * W, rank, split, C, P, A)
    sums = _nothing(ROWS, C, P, A)
    for start in tl.range(0, chunk, ROWS, num_stages=STAGES):
        at = _at(part, start, chunk, step % 2, ROWS)
        row = at + tl.arange(0, ROWS)
        known = row < n
        tiles = _tiles(first, others, at, n, rank, split, stride, ROWS, C, P, A, UNIT)
        own = tl.load(diagonal + row, known, 0.0)
        if not FIRST:
            own = own * tl.load(basis + step * n + row, known, 0.0)
        y = unit * (_image(tiles, c, P, A) - own)
        if FIRST:
            y = tl.where(known, tl.abs(y) + 1e-3, 0.0)
        tl.store(out + row, y, known)
        if not LAST:
            sums = _gathered(sums, tiles, y, P, A)
    if not LAST:
        _store_sums(partial + (sample * parts + part) * W, sums, rank, split, C, P, A)
    tl.debug_barrier()
    _store_dots(basis, out, found + (sample * parts + part) * 2 * SLOTS, n, step, part, chunk, LINE)


@triton.jit(do_not_specialize=["step"])
def remainder(
    first, others, basis, image, rest, growth, partial, found, more,
    n, rank, split, stride, chunk, parts, step,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """z = y - sum of (y . x_k) x_k, this block's part of z . x_k and of |z|^2; and of U' z, where it is made anew."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot = tl.arange(0, SLOTS)
    along, square = _dots(found + sample * parts * 2 * SLOTS, parts)
    left = square - tl.sum(along * along, 0)  # about |z|^2
    before = tl.load(growth + sample * SLOTS + slot, slot <= step, 0.0)
    reach = square + tl.sum(along * along * before * before, 0)
    anew = reach > MOST_GROWTH * MOST_GROWTH * left
    if part == 0:
        larger = tl.where(anew, 0.0, tl.sqrt(reach / tl.maximum(left, TINY)))
        tl.store(growth + sample * SLOTS + step + 1, larger)
    basis += sample * SLOTS * n
    rest += sample * n
    for start in range(0, chunk, LINE):
        row, known = _rows(part, start, chunk, n, LINE)
        there = (slot <= step)[:, None] & known[None, :]
        vectors = tl.load(basis + slot[:, None] * n + row[None, :], there, 0.0)
        y = tl.load(image + sample * n + row, known, 0.0)
        tl.store(rest + row, y - tl.sum(vectors * along[:, None], 0), known)
    tl.debug_barrier()
    _store_dots(basis, rest, more + (sample * parts + part) * 2 * SLOTS, n, step, part, chunk, LINE)
    if anew:
        first += sample * n * split
        others += sample * n * stride * UNIT
        sums = partial + (sample * parts + part) * W
        _pull_rows(
            first, others, rest, sums, n, rank, split, stride, chunk, chunk, part, 0, ROWS, C, P, A, UNIT, STAGES
        )


@triton.jit(do_not_specialize=["step"])
def advance(
    rest, weights, basis, pulls, growth, partial, found, more, total, dots, n, rank, chunk, parts, step,
    FIRST: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, JOINED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The next vector, z without what rounding left along the basis, of length 1, U' of it, and w times that.

    At most rounding counts as 0. dots: y . x_k, (B, SLOTS, SLOTS). FIRST: of z = y.
    """
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    slot = tl.arange(0, SLOTS)
    taken, square = _dots(found + sample * parts * 2 * SLOTS, parts)
    size = tl.sqrt(square)
    if FIRST:
        along, scale = taken, 1 / tl.maximum(size, TINY)
    else:
        if part == 0:
            tl.store(dots + (sample * SLOTS + step) * SLOTS + slot, taken)
        anew = tl.load(growth + sample * SLOTS + step + 1) == 0
        along, square = _dots(more + sample * parts * 2 * SLOTS, parts)
        length = tl.sqrt(tl.maximum(square - tl.sum(along * along, 0), 0.0))
        scale = tl.where(length > size * 1e-4, 1 / tl.maximum(length, TINY), 0.0)
        taken = along + tl.where(anew, 0.0, taken)
    basis += sample * SLOTS * n
    pulls += sample * SLOTS * W
    for start in range(0, chunk, LINE):
        row, known = _rows(part, start, chunk, n, LINE)
        x = tl.load(rest + sample * n + row, known, 0.0)
        if not FIRST:
            there = (slot <= step)[:, None] & known[None, :]
            vectors = tl.load(basis + slot[:, None] * n + row[None, :], there, 0.0)
            x -= tl.sum(vectors * along[:, None], 0)
        tl.store(basis + (step + 1) * n + row, x * scale, known)
    for start in range(part * JOINED, rank, parts * JOINED):
        column = start + tl.arange(0, JOINED)
        known = column < rank
        pulled = _joined(partial + sample * parts * W, column, rank, parts, W, JOINED, PARTS)
        if not FIRST:
            there = (slot <= step)[:, None] & known[None, :]
            old = tl.load(pulls + slot[:, None] * W + column[None, :], there, 0.0)
            pulled -= tl.sum(old * taken[:, None], 0)
        pulled *= scale
        tl.store(pulls + (step + 1) * W + column, pulled, known)
        weight = tl.load(weights + sample * rank + column, known, 0.0)
        tl.store(total + sample * W + column, weight * pulled, known)


@triton.jit
def combine(dots, found, shares, parts):
    """How the vectors are mixed in the unit vector of largest |x' J x|. found: of the last step."""
    sample = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, SLOTS)
    last, _ = _dots(found + sample * parts * 2 * SLOTS, parts)
    place = dots + sample * SLOTS * SLOTS + slot[:, None] * SLOTS + slot[None, :]
    lower = tl.load(place, (slot < SLOTS - 1)[:, None] & (slot[:, None] >= slot[None, :]), 0.0)
    lower = tl.where((slot == SLOTS - 1)[:, None], last[None, :], lower)
    small = lower + tl.where(slot[:, None] == slot[None, :], 0.0, tl.trans(lower))
    share = _top(small)
    tl.store(shares + sample * SLOTS + slot, share / tl.maximum(tl.sqrt(tl.sum(share * share, 0)), TINY))


@triton.jit
def mixture(basis, shares, out, n, LINE: tl.constexpr):
    """The sum of the vectors of the basis by their shares."""
    sample = tl.program_id(0).to(tl.int64)
    row, slot = tl.program_id(1) * LINE + tl.arange(0, LINE), tl.arange(0, SLOTS)
    known = row < n
    vectors = tl.load(basis + sample * SLOTS * n + slot[:, None] * n + row[None, :], known[None, :], 0.0)
    share = tl.load(shares + sample * SLOTS + slot)
    tl.store(out + sample * n + row, tl.sum(vectors * share[:, None], 0), known)
