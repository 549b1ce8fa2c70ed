"""Iterations over spins with couplings J = U diag(w) U' - diag(d) too large for one program: a few launches a step.

A product with J is two passes over U, in blocks of rows: `U' x` leaves a part for each block, `join` adds them up, and
the second pass goes on with what the iteration needs of J x. A sample that is done skips all of it, so that the number
of launches can be fixed and nobody asks the device.

Beside a tile of U every thread of a program holds the numbers of all its rows. So what concerns rows alone is done
before or after, LINE rows at a time, each by one thread, and passes through memory, with a barrier. Where several
threads still share a row, a barrier keeps the first from overwriting what the others have yet to read.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.low_rank import _pull_rows, _push_rows, _rows
from spinformer.kernels.device.spins import SLOTS, TINY, _mixing_weights, _tanh

WINDOW = tl.constexpr(5)
PARTS = tl.constexpr(256)  # blocks whose parts are added at once


@triton.jit
def _added(numbers, parts):
    """The sum of the blocks' parts of one number."""
    sum_ = tl.zeros((PARTS,), tl.float32)
    for start in range(0, parts, PARTS):
        part = start + tl.arange(0, PARTS)
        sum_ += tl.load(numbers + part, part < parts, 0.0)
    return tl.sum(sum_, 0)


@triton.jit(do_not_specialize=["slot"])
def pull(
    couplings, narrow, states, gaps, mixing, damping, done, partial, n, rank, split, slot, chunk, parts,
    FIRST: tl.constexpr, CLIPPED: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """The next state m, sum over k of a_k (m_k + damping r_k), into its slot; and this block's part of U' m."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(done + sample) == 0:
        couplings += sample * n * rank
        narrow += sample * n * split
        states += sample * WINDOW * n
        gaps += sample * WINDOW * n
        if not FIRST:
            step = tl.load(damping + sample)
            for start in range(0, chunk, LINE):
                row, known = _rows(part, start, chunk, n, LINE)
                m = tl.zeros((LINE,), tl.float32)
                for k in tl.static_range(5):
                    old, gap = tl.load(states + k * n + row, known, 0.0), tl.load(gaps + k * n + row, known, 0.0)
                    m += tl.load(mixing + sample * SLOTS + k) * (old + step * gap)
                if CLIPPED:
                    m = tl.minimum(tl.maximum(m, -1.0), 1.0)
                tl.debug_barrier()
                tl.store(states + slot * n + row, m, known)
            tl.debug_barrier()
        sums = partial + (sample * parts + part) * W
        _pull_rows(couplings, narrow, states + slot * n, sums, n, rank, split, chunk, part, ROWS, R, A)


@triton.jit(do_not_specialize=["slot"])
def push(
    couplings, narrow, diagonal, fields, cold, mask, states, gaps, images, done, total, found,
    n, rank, split, slot, chunk, parts, MASKED: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """r = tanh(cold (h + J m)) - m into its slot; this block's part of r . r_k, and its largest |r|."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(done + sample) == 0:
        couplings += sample * n * rank
        narrow += sample * n * split
        states += sample * WINDOW * n
        gaps += sample * WINDOW * n
        inner = total + sample * W
        _push_rows(couplings, narrow, inner, images + sample * n, n, rank, split, chunk, part, ROWS, R, A)
        tl.debug_barrier()
        strength = tl.load(cold + sample)
        dot0, dot1, dot2 = tl.zeros((LINE,), tl.float32), tl.zeros((LINE,), tl.float32), tl.zeros((LINE,), tl.float32)
        dot3, dot4, worst = tl.zeros((LINE,), tl.float32), tl.zeros((LINE,), tl.float32), tl.zeros((LINE,), tl.float32)
        for start in range(0, chunk, LINE):
            row, known = _rows(part, start, chunk, n, LINE)
            m = tl.load(states + slot * n + row, known, 0.0)
            image = tl.load(images + sample * n + row, known, 0.0)
            image -= tl.load(diagonal + sample * n + row, known, 0.0) * m
            gap = _tanh(strength * (tl.load(fields + sample * n + row, known, 0.0) + image))
            if MASKED:
                gap = gap * tl.load(mask + sample * n + row, known, 0).to(tl.float32)
            gap = tl.where(known, gap - m, 0.0)
            dot0 += gap * tl.where(slot == 0, gap, tl.load(gaps + row, known, 0.0))
            dot1 += gap * tl.where(slot == 1, gap, tl.load(gaps + n + row, known, 0.0))
            dot2 += gap * tl.where(slot == 2, gap, tl.load(gaps + 2 * n + row, known, 0.0))
            dot3 += gap * tl.where(slot == 3, gap, tl.load(gaps + 3 * n + row, known, 0.0))
            dot4 += gap * tl.where(slot == 4, gap, tl.load(gaps + 4 * n + row, known, 0.0))
            worst = tl.maximum(worst, tl.abs(gap))
            tl.store(gaps + slot * n + row, gap, known)
        spot = found + (sample * parts + part) * SLOTS
        tl.store(spot, tl.sum(dot0, 0))
        tl.store(spot + 1, tl.sum(dot1, 0))
        tl.store(spot + 2, tl.sum(dot2, 0))
        tl.store(spot + 3, tl.sum(dot3, 0))
        tl.store(spot + 4, tl.sum(dot4, 0))
        tl.store(spot + 5, tl.max(worst, 0))


@triton.jit(do_not_specialize=["slot", "count"])
def decide(
    found, gram, mixing, damping, length, done, residual, steps, last, count, slot, parts, max_steps, most, tol,
    ANDERSON: tl.constexpr,
):  # fmt: skip
    """Of a sample after `count` steps: its residual, whether it is done, and how the next state is mixed."""
    sample = tl.program_id(0).to(tl.int64)
    if tl.load(done + sample) == 0:
        k = tl.arange(0, SLOTS)
        sums, worst = tl.zeros((32, SLOTS), tl.float32), tl.zeros((32, SLOTS), tl.float32)
        for start in range(0, parts, 32):
            part = start + tl.arange(0, 32)
            place = (sample * parts + part)[:, None] * SLOTS + k[None, :]
            row = tl.load(found + place, (part < parts)[:, None] & (k < 6)[None, :], 0.0)
            sums += tl.where((k < WINDOW)[None, :], row, 0.0)
            worst = tl.maximum(worst, tl.where((k == WINDOW)[None, :], row, 0.0))
        dots, largest = tl.sum(sums, 0), tl.max(tl.max(worst, 1), 0)
        tl.store(residual + sample, largest)
        tl.store(last + sample, slot)
        tl.store(steps + sample, count)
        if (largest <= tol) | (count == max_steps):
            tl.store(done + sample, 1)
        else:
            share = tl.where(k == slot, 1.0, 0.0)
            if ANDERSON:
                place = gram + sample * SLOTS * SLOTS + k[:, None] * SLOTS + k[None, :]
                whole = tl.load(place)
                whole = tl.where((k == slot)[:, None], dots[None, :], whole)
                whole = tl.where((k == slot)[None, :], dots[:, None], whole)
                tl.store(place, whole)
                size = tl.sqrt(tl.sum(tl.where(k == slot, dots, 0.0), 0))
                factor = tl.where(size > tl.load(length + sample), 0.5, 1.1)
                tl.store(length + sample, size)
                tl.store(damping + sample, tl.minimum(tl.load(damping + sample) * factor, most))
                share = _mixing_weights(whole, tl.minimum(count + 1, WINDOW))
            tl.store(mixing + sample * SLOTS + k, tl.where(k < WINDOW, share, 0.0))


@triton.jit(do_not_specialize=["count"])
def pull_adjoint(
    couplings, narrow, root, residues, directions, images, squares, sums, stopped, partial,
    n, rank, split, count, chunk, parts, width, FIRST: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """p = r + beta p, and this block's part of U' root p. squares: |r|^2 after each step; sums: parts of the last."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(stopped + sample) == 0:
        couplings += sample * n * rank
        narrow += sample * n * split
        beta = 0.0
        if not FIRST:
            square = _added(sums + sample * parts, parts)
            beta = square / tl.maximum(tl.load(squares + sample * width + count - 1), TINY)
            if part == 0:
                tl.store(squares + sample * width + count, square)
        for start in range(0, chunk, LINE):
            row, known = _rows(part, start, chunk, n, LINE)
            p = tl.load(residues + sample * n + row, known, 0.0)
            if not FIRST:
                p += beta * tl.load(directions + sample * n + row, known, 0.0)
                tl.debug_barrier()
            tl.store(directions + sample * n + row, p, known)
            tl.store(images + sample * n + row, p * tl.load(root + sample * n + row, known, 0.0), known)
        tl.debug_barrier()
        pulled = partial + (sample * parts + part) * W
        _pull_rows(couplings, narrow, images + sample * n, pulled, n, rank, split, chunk, part, ROWS, R, A)


@triton.jit
def push_adjoint(
    couplings, narrow, diagonal, root, cold, directions, images, stopped, total, sums, n, rank, split, chunk, parts,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """A p = p - cold root J root p, and this block's part of p . A p."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(stopped + sample) == 0:
        couplings += sample * n * rank
        narrow += sample * n * split
        inner = total + sample * W
        _push_rows(couplings, narrow, inner, images + sample * n, n, rank, split, chunk, part, ROWS, R, A)
        tl.debug_barrier()
        strength = tl.load(cold + sample)
        sum_ = tl.zeros((LINE,), tl.float32)
        for start in range(0, chunk, LINE):
            row, known = _rows(part, start, chunk, n, LINE)
            p = tl.load(directions + sample * n + row, known, 0.0)
            scale = tl.load(root + sample * n + row, known, 0.0)
            image = tl.load(images + sample * n + row, known, 0.0)
            image -= tl.load(diagonal + sample * n + row, known, 0.0) * scale * p
            image = p - strength * scale * image
            tl.debug_barrier()
            tl.store(images + sample * n + row, image, known)
            sum_ += p * image
        tl.store(sums + sample * parts + part, tl.sum(sum_, 0))


@triton.jit(do_not_specialize=["count"])
def step_adjoint(
    solution, residues, directions, images, squares, curvatures, sums, stopped, n, count, chunk, parts, width,
    LINE: tl.constexpr,
):  # fmt: skip
    """x += step p and r -= step A p, with step = |r|^2 / p . A p; this block's part of |r|^2."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(stopped + sample) == 0:
        curvature = _added(curvatures + sample * parts, parts)
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


@triton.jit
def stop_adjoint(curvatures, sums, goal, stopped, reached, parts):
    """Of a sample after a step: |r|^2, and whether it is at rounding level or its matrix not positive definite."""
    sample = tl.program_id(0).to(tl.int64)
    if tl.load(stopped + sample) == 0:
        square, curvature = _added(sums + sample * parts, parts), _added(curvatures + sample * parts, parts)
        tl.store(reached + sample, square)
        if (square <= tl.load(goal + sample)) | (curvature <= 0):
            tl.store(stopped + sample, 1)
