"""Iterations over the spins of a sample in one program: the mean field, and back through its steps."""

import triton
import triton.language as tl

from spinformer.kernels.device.products import FACTORS, NARROW, _lines, _matrix, _product

RIDGE = tl.constexpr(1e-6)
SLOTS = tl.constexpr(8)  # the power of two above WINDOW, and the steps of Lanczos' method
TINY = tl.constexpr(1.2e-38)


@triton.jit
def _tanh(x):
    fall = tl.exp(-2 * tl.abs(x))
    size = (1 - fall) / (1 + fall)
    return tl.where(x < 0, -size, size)


@triton.jit
def _mixing_shares(gram, depth):
    """`_mixing_weights` from r_a . r_b at place 6 a + b of 32: one for each thread of a warp, which shuffles them."""
    place, slot = tl.arange(0, 32), tl.arange(0, SLOTS)
    a, b = place // 6, place % 6
    used = (a < depth) & (b < depth)
    scale = tl.maximum(tl.max(tl.where(used, gram, 0.0), 0), TINY)
    system = tl.where(used, gram / scale, 0.0) + tl.where(a == b, tl.where(used, RIDGE, 1.0), 0.0)
    system = tl.where(b == 5, tl.where(a < depth, 1.0, 0.0), system)
    for p in tl.static_range(5):
        row = tl.gather(system, 6 * p + b, 0) / tl.gather(system, 7 * p + 0 * place, 0)
        column = tl.gather(system, tl.minimum(6 * a + p, 31), 0)
        system = tl.where(a == p, row, system - column * row)
    share = tl.where(slot < 5, tl.gather(system, tl.minimum(6 * slot + 5, 31), 0), 0.0)
    return share / tl.sum(share, 0)


@triton.jit
def _mixing_weights(gram, depth):
    """a = argmin |sum a_k r_k|, sum a_k = 1, from the Gram matrix of the r_k: Gauss-Jordan, no pivots needed."""
    place = tl.arange(0, 32)
    return _mixing_shares(tl.gather(tl.reshape(gram, (SLOTS * SLOTS,)), place // 6 * SLOTS + place % 6, 0), depth)


@triton.jit
def _iterate(
    matrix, extra, couplings, weights, diagonal, scratch, path, field, strength, keep, m, image, n, rank, split,
    max_steps, least_steps, damping, tol,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
    ANDERSON: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """m = tanh(field + strength J m), J m, its residual and the steps taken, from m and J m. KEEP: path holds all m."""
    i = tl.arange(0, N)
    known = i < n
    if KEEP:
        tl.store(path + i, m, known)
    gap = _tanh(field + strength * image) * keep - m
    worst = tl.max(tl.abs(gap), 0)
    slot, place = tl.arange(0, SLOTS), tl.arange(0, 32)
    states, gaps = tl.zeros((SLOTS, N), tl.float32), tl.zeros((SLOTS, N), tl.float32)
    gram = tl.zeros((32,), tl.float32)
    part, length, count = damping * 1.0, float("inf"), 0
    while (count < max_steps) & ((worst > tol) | (count < least_steps)):
        if ANDERSON:
            last = count % 5  # WINDOW of `spinformer.ising.anderson`
            states = tl.where((slot == last)[:, None], m[None, :], states)
            gaps = tl.where((slot == last)[:, None], gap[None, :], gaps)
            along = tl.sum(gaps * gap[None, :], 1)
            longer = tl.sqrt(tl.sum(tl.where(slot == last, along, 0.0), 0))
            part = tl.minimum(part * tl.where(longer > length, 0.5, 1.1), damping)
            length = longer
            by_row, by_column = tl.gather(along, place % 6, 0), tl.gather(along, place // 6, 0)
            gram = tl.where(place // 6 == last, by_row, tl.where(place % 6 == last, by_column, gram))
            share = _mixing_shares(gram, tl.minimum(count + 1, 5))
            mixed = tl.sum((states + part * gaps) * share[:, None], 0)
            m = tl.minimum(tl.maximum(mixed, -1.0), 1.0)
        else:
            m = m + damping * gap
        count += 1
        if KEEP:
            tl.store(path + count * n + i, m, known)
        image = _product(matrix, extra, couplings, weights, diagonal, scratch, m, n, rank, split, N, R, ROWS, FORM)
        gap = _tanh(field + strength * image) * keep - m
        worst = tl.max(tl.abs(gap), 0)
    return m, image, worst, count


@triton.jit
def solve(
    fields, couplings, weights, diagonal, narrow, cold, start, mask, scratch, state, residual, steps, path,
    n, rank, split, max_steps, least_steps, damping, tol,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
    ANDERSON: tl.constexpr, MASKED: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """m = tanh(cold (h + J m)) by damped steps or Anderson's. KEEP: path holds every state, (B, max_steps + 1, n)."""
    sample = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    known = i < n
    size = n if FORM < FACTORS else (rank - split if FORM == NARROW else rank)
    couplings += sample * n * size
    narrow += sample * n * split
    weights += sample * rank
    diagonal += sample * n
    scratch += sample * n * _lines(ROWS, FORM)
    beta = tl.load(cold + sample)
    field = tl.load(fields + sample * n + i, known, 0.0) * beta
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + sample * n + i, known, 0).to(tl.float32)
    matrix, extra = _matrix(couplings, narrow, scratch, n, rank, split, N, R, ROWS, FORM)
    m = tl.load(start + sample * n + i, known, 0.0)
    image = _product(matrix, extra, couplings, weights, diagonal, scratch, m, n, rank, split, N, R, ROWS, FORM)
    m, _, worst, count = _iterate(
        matrix, extra, couplings, weights, diagonal, scratch, path + sample * (max_steps + 1) * n, field, beta, keep, m,
        image, n, rank, split,
        max_steps, least_steps, damping, tol, N, R, ROWS, FORM, ANDERSON, KEEP,
    )  # fmt: skip
    tl.store(state + sample * n + i, m, known)
    tl.store(residual + sample, worst)
    tl.store(steps + sample, count)


@triton.jit
def through_steps(
    gradient, fields, couplings, weights, diagonal, narrow, cold, mask, scratch, path, steps, inner,
    to_fields, to_start, to_cold, n, rank, split, max_steps, damping,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """The gradient through damped steps, last to first. inner: that of cold (h + J m_t) at each step, (B, steps, n)."""
    sample = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    known = i < n
    size = n if FORM < FACTORS else (rank - split if FORM == NARROW else rank)
    couplings += sample * n * size
    narrow += sample * n * split
    weights += sample * rank
    diagonal += sample * n
    scratch += sample * n * _lines(ROWS, FORM)
    beta = tl.load(cold + sample)
    field = tl.load(fields + sample * n + i, known, 0.0)
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + sample * n + i, known, 0).to(tl.float32)
    matrix, extra = _matrix(couplings, narrow, scratch, n, rank, split, N, R, ROWS, FORM)
    g = tl.load(gradient + sample * n + i, known, 0.0)
    sum_fields, sum_cold = tl.zeros((N,), tl.float32), 0.0
    count = tl.load(steps + sample).to(tl.int32)
    for back in range(max_steps):
        t = max_steps - 1 - back
        a = tl.zeros((N,), tl.float32)
        if t < count:
            m = tl.load(path + (sample * (max_steps + 1) + t) * n + i, known, 0.0)
            image = _product(matrix, extra, couplings, weights, diagonal, scratch, m, n, rank, split, N, R, ROWS, FORM)
            whole = field + image
            spin = _tanh(beta * whole) * keep
            a = damping * (1 - spin * spin) * keep * g
            sum_fields += a
            sum_cold += tl.sum(a * whole, 0)
            pulled = _product(matrix, extra, couplings, weights, diagonal, scratch, a, n, rank, split, N, R, ROWS, FORM)
            g = (1 - damping) * g + beta * pulled
        tl.store(inner + (sample * max_steps + t) * n + i, a, known)
    tl.store(to_fields + sample * n + i, beta * sum_fields, known)
    tl.store(to_start + sample * n + i, g, known)
    tl.store(to_cold + sample, sum_cold)


@triton.jit
def mixing(gram, weights, depth):
    """`_mixing_weights` of each sample's Gram matrix of `depth` rows."""
    sample = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, SLOTS)
    known = (slot < depth)[:, None] & (slot < depth)[None, :]
    whole = tl.load(gram + sample * depth * depth + slot[:, None] * depth + slot[None, :], known, 0.0)
    tl.store(weights + sample * depth + slot, _mixing_weights(whole, depth), slot < depth)
