"""Conjugate gradients for A = I - cold root J root, J = U diag(w) U' - diag(d) too large for one program.

A step is one pass over U and one over the spins. The pass makes A p and, from the same tiles, U' root A p. Then the
same combinations that lead from A p to the next r and p lead to U' root r and U' root p, `pulled` and `along`, from
which the next pass makes J root p. Rounding adds up in them, so U' root r is made anew every few steps.

A sample that has stopped skips all of it. pair: two rooms in turn for what one step reads and writes.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.passes import (
    _at,
    _gathered,
    _image,
    _joined,
    _nothing,
    _pieces,
    _pull_rows,
    _rows,
    _store_pieces,
    _store_sums,
    _tiles,
)
from spinformer.kernels.device.spins import TINY

PARTS = tl.constexpr(256)  # blocks whose parts are added at once


@triton.jit
def _added(numbers, parts):
    """The sum of the blocks' parts of one number."""
    sum_ = tl.zeros((PARTS,), tl.float32)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)
        sum_ += tl.load(numbers + part, part < parts, 0.0)
    return tl.sum(sum_, 0)


@triton.jit
def pull_residue(
    first, others, root, residues, images, stopped, partial, n, rank, split, stride, chunk, parts,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """This block's part of U' root r. images: room for root r."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(stopped + sample) == 0:
        first += sample * n * split
        others += sample * n * stride * UNIT
        images += sample * n
        for start in range(0, chunk, LINE):
            row, known = _rows(part, start, chunk, n, LINE)
            r = tl.load(residues + sample * n + row, known, 0.0)
            tl.store(images + row, r * tl.load(root + sample * n + row, known, 0.0), known)
        tl.debug_barrier()
        sums = partial + (sample * parts + part) * W
        _pull_rows(
            first, others, images, sums, n, rank, split, stride, chunk, chunk, part, 0, ROWS, C, P, A, UNIT, STAGES
        )


@triton.jit
def join_residue(
    partial, stopped, pulled, rank, parts, W: tl.constexpr, JOINED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """U' root r, the sum of the blocks' parts."""
    sample = tl.program_id(0).to(tl.int64)
    if tl.load(stopped + sample) == 0:
        column = tl.program_id(1) * JOINED + tl.arange(0, JOINED)
        sums = _joined(partial + sample * parts * W, column, rank, parts, W, JOINED, PARTS)
        tl.store(pulled + sample * W + column, sums, column < rank)


@triton.jit(do_not_specialize=["count"])
def image_adjoint(
    first, others, diagonal, weights, root, cold, goal, residues, directions, images, pulled, along,
    squares, sums, curvatures, stopped, partial, n, rank, split, stride, chunk, parts, count, width,
    FIRST: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """p = r + beta p, A p, and this block's part of p . A p and of U' root A p; or the end, at rounding level

    And where A proves not to be positive definite. squares: |r|^2 after each step; sums, curvatures: the blocks' parts
    of |r|^2 and of p . A p.
    """
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    pair, other = count % 2, (count + 1) % 2
    curvatures += sample * 2 * parts
    goes, beta = tl.load(stopped + sample) == 0, 0.0
    if not FIRST:
        if goes:
            square, curvature = _added(sums + sample * parts, parts), _added(curvatures + other * parts, parts)
            beta = square / tl.maximum(tl.load(squares + sample * width + count - 1), TINY)
            goes = (square > tl.load(goal + sample)) & (curvature > 0)
            if part == 0:
                tl.store(squares + sample * width + count, square)
                if not goes:
                    tl.store(stopped + sample, 1)
    if goes:
        first += sample * n * split
        others += sample * n * stride * UNIT
        directions, images, root, diagonal = (
            directions + sample * n, images + sample * n, root + sample * n, diagonal + sample * n
        )  # fmt: skip
        for start in range(0, chunk, LINE):
            row, known = _rows(part, start, chunk, n, LINE)
            p = tl.load(residues + sample * n + row, known, 0.0)
            if not FIRST:
                p += beta * tl.load(directions + row, known, 0.0)
                tl.debug_barrier()
            tl.store(directions + row, p, known)
        c = _pieces(pulled + sample * W, rank, split, C, P, A)
        along += sample * 2 * W
        if not FIRST:
            c = _gathered_pieces(c, _pieces(along + other * W, rank, split, C, P, A), beta, P, A)
        if part == 0:
            _store_pieces(along + pair * W, c, rank, split, C, P, A)
        c = _weighted(c, _pieces(weights + sample * rank, rank, split, C, P, A), P, A)
        strength = tl.load(cold + sample)
        pulls, curved = _nothing(ROWS, C, P, A), tl.zeros((ROWS,), tl.float32)
        tl.debug_barrier()
        for start in tl.range(0, chunk, ROWS, num_stages=STAGES):
            at = _at(part, start, chunk, pair, ROWS)
            row = at + tl.arange(0, ROWS)
            known = row < n
            tiles = _tiles(first, others, at, n, rank, split, stride, ROWS, C, P, A, UNIT)
            p, scale = tl.load(directions + row, known, 0.0), tl.load(root + row, known, 0.0)
            image = _image(tiles, c, P, A) - tl.load(diagonal + row, known, 0.0) * scale * p
            image = p - strength * scale * image
            tl.store(images + row, image, known)
            curved += p * image
            pulls = _gathered(pulls, tiles, scale * image, P, A)
        _store_sums(partial + (sample * parts + part) * W, pulls, rank, split, C, P, A)
        tl.store(curvatures + pair * parts + part, tl.sum(curved, 0))


@triton.jit
def _gathered_pieces(c, more, factor, P: tl.constexpr, A: tl.constexpr):
    """c + factor more."""
    sums = ()
    for k in tl.static_range(P):
        sums += (c[k] + factor * more[k],)
    if A > 0:
        sums += (c[P] + factor * more[P],)
    return sums


@triton.jit
def _weighted(c, weight, P: tl.constexpr, A: tl.constexpr):
    """w c."""
    products = ()
    for k in tl.static_range(P):
        products += (c[k] * weight[k],)
    if A > 0:
        products += (c[P] * weight[P],)
    return products


@triton.jit(do_not_specialize=["count"])
def step_adjoint(
    solution, residues, directions, images, pulled, partial, squares, curvatures, sums, stopped,
    n, rank, chunk, parts, count, width,
    LINE: tl.constexpr, W: tl.constexpr, JOINED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """x += step p, r -= step A p and U' root r -= step U' root A p, with step = |r|^2 / p . A p; parts of |r|^2."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(stopped + sample) == 0:
        curvature = _added(curvatures + (sample * 2 + count % 2) * parts, parts)
        step = tl.where(curvature > 0, tl.load(squares + sample * width + count) / curvature, 0.0)
        sum_ = tl.zeros((LINE,), tl.float32)
        for start in range(0, chunk, LINE):
            line, known = _rows(part, start, chunk, n, LINE)
            row = line + sample * n
            x = tl.load(solution + row, known, 0.0) + step * tl.load(directions + row, known, 0.0)
            r = tl.load(residues + row, known, 0.0) - step * tl.load(images + row, known, 0.0)
            tl.debug_barrier()
            tl.store(solution + row, x, known)
            tl.store(residues + row, r, known)
            sum_ += r * r
        tl.store(sums + sample * parts + part, tl.sum(sum_, 0))
        for start in range(part * JOINED, rank, parts * JOINED):
            column = start + tl.arange(0, JOINED)
            spot = pulled + sample * W + column
            taken = step * _joined(partial + sample * parts * W, column, rank, parts, W, JOINED, PARTS)
            old = tl.load(spot, column < rank, 0.0)
            tl.debug_barrier()
            tl.store(spot, old - taken, column < rank)
