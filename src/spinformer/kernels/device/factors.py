"""The mean field with couplings J = U diag(w) U' - diag(d) too large for one program: a few launches a step.

A product with J is two passes over U, in blocks of rows: `U' x` leaves a part for each block, `join` adds them up, and
the second pass goes on with what the iteration needs of J x. A sample that is done skips all of it, so that the number
of launches can be fixed and nobody asks the device.

What concerns rows alone is done before or after, LINE rows at a time, and passes through memory, with a barrier. Where
several threads still share a row, a barrier keeps the first from overwriting what the others have yet to read.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.passes import _pull_rows, _push_rows, _rows
from spinformer.kernels.device.spins import SLOTS, _mixing_weights, _tanh

WINDOW = tl.constexpr(5)


@triton.jit(do_not_specialize=["slot"])
def pull(
    first, others, states, gaps, mixing, damping, done, partial, n, rank, split, stride, chunk, parts, slot,
    FIRST: tl.constexpr, CLIPPED: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The next state m, sum over k of a_k (m_k + damping r_k), into its slot; and this block's part of U' m."""
    sample, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    if tl.load(done + sample) == 0:
        first += sample * n * split
        others += sample * n * stride * UNIT
        states += sample * WINDOW * n
        gaps += sample * WINDOW * n
        until = chunk
        if FIRST:  # often from 0: then there is nothing to read
            most = tl.zeros((LINE,), tl.float32)
            for start in range(0, chunk, LINE):
                row, known = _rows(part, start, chunk, n, LINE)
                most = tl.maximum(most, tl.abs(tl.load(states + slot * n + row, known, 0.0)))
            until = tl.where(tl.max(most, 0) > 0, chunk, 0)
        else:
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
        _pull_rows(
            first, others, states + slot * n, sums, n, rank, split, stride, chunk, until, part, 0,
            ROWS, C, P, A, UNIT, STAGES,
        )  # fmt: skip


@triton.jit(do_not_specialize=["slot"])
def push(
    first, others, weights, diagonal, fields, cold, mask, states, gaps, images, done, partial, total, found,
    n, rank, split, stride, chunk, parts, slot, FIRST: tl.constexpr, MASKED: tl.constexpr,
    W: tl.constexpr, LINE: tl.constexpr, ROWS: tl.constexpr, C: tl.constexpr, P: tl.constexpr, A: tl.constexpr,
    UNIT: tl.constexpr, STAGES: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """r = tanh(cold (h + J m)) - m into its slot; this block's part of r . r_k, and its largest |r|."""
    sample, part = tl.num_programs(0).to(tl.int64) - 1 - tl.program_id(0), parts - 1 - tl.program_id(1)
    if tl.load(done + sample) == 0:
        first += sample * n * split
        others += sample * n * stride * UNIT
        states += sample * WINDOW * n
        gaps += sample * WINDOW * n
        _push_rows(
            first, others, weights + sample * rank, partial + sample * parts * W, total + sample * W,
            images + sample * n, n, rank, split, stride, chunk, parts, part, 1, W, ROWS, C, P, A, UNIT, STAGES, PARTS,
            FIRST,
        )  # fmt: skip
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
