"""Iterations over the spins of a sample in one program: the mean field, and back through its steps.

Couplings come in one of four forms: RESIDENT, a matrix that stays on chip; STREAMED, a matrix that is read again for
every product; FACTORS, J = U diag(w) U' off the diagonal, read twice for every product; NARROW, the same where the
first `split` columns of U are numbers of 16 bits, and all of it stays on chip.
"""

import triton
import triton.language as tl

RESIDENT = tl.constexpr(0)
STREAMED = tl.constexpr(1)
FACTORS = tl.constexpr(2)
NARROW = tl.constexpr(3)
RIDGE = tl.constexpr(1e-6)
SLOTS = tl.constexpr(8)  # the power of two above WINDOW, and the steps of Lanczos' method
TINY = tl.constexpr(1.2e-38)


@triton.jit
def _tanh(x):
    fall = tl.exp(-2 * tl.abs(x))
    size = (1 - fall) / (1 + fall)
    return tl.where(x < 0, -size, size)


@triton.jit
def _matrix(
    couplings, narrow, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """The couplings on chip, in two parts, or nothing."""
    i = tl.arange(0, N)
    if FORM == RESIDENT:
        inside = (i < n)[:, None] & (i < n)[None, :]
        return tl.load(couplings + i[:, None] * n + i[None, :], inside, 0.0), 0.0
    elif FORM == NARROW:
        column, k = tl.arange(0, R), tl.arange(0, ROWS)
        inside = (i < n)[:, None] & (column < split)[None, :]
        first = tl.load(narrow + i[:, None] * split + column[None, :], inside, 0.0)
        inside = (i < n)[:, None] & (k < rank - split)[None, :]
        return first, tl.load(couplings + i[:, None] * rank + split + k[None, :], inside, 0.0)
    else:
        return 0.0, 0.0


@triton.jit
def _product(
    matrix, extra, couplings, weights, diagonal, scratch, x, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """J x. scratch: room for n numbers, this sample's own."""
    i = tl.arange(0, N)
    if FORM == RESIDENT:
        return tl.sum(matrix * x[None, :], 1)
    elif FORM == STREAMED:
        for start in range(0, n, ROWS):
            row = start + tl.arange(0, ROWS)
            inside = (row < n)[:, None] & (i < n)[None, :]
            tile = tl.load(couplings + row[:, None] * n + i[None, :], inside, 0.0).to(tl.float32)
            tl.store(scratch + row, tl.sum(tile * x[None, :], 1), row < n)
        tl.debug_barrier()
        result = tl.load(scratch + i, i < n, 0.0)
        tl.debug_barrier()
        return result
    elif FORM == NARROW:
        column, k = tl.arange(0, R), tl.arange(0, ROWS)
        inner = tl.sum(matrix.to(tl.float32) * x[:, None], 0) * tl.load(weights + column, column < split, 0.0)
        more = tl.sum(extra * x[:, None], 0) * tl.load(weights + split + k, k < rank - split, 0.0)
        image = tl.sum(matrix.to(tl.float32) * inner[None, :], 1) + tl.sum(extra * more[None, :], 1)
        return image - tl.load(diagonal + i, i < n, 0.0) * x
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


@triton.jit
def _mixing_weights(gram, depth):
    """a = argmin |sum a_k r_k|, sum a_k = 1, from the Gram matrix of the r_k: Gauss-Jordan, no pivots needed."""
    slot = tl.arange(0, SLOTS)
    used = slot < depth
    same = slot[:, None] == slot[None, :]
    scale = tl.maximum(tl.max(tl.max(gram, 1), 0), TINY)
    system = tl.where(same, RIDGE, 0.0) + gram / scale
    system = tl.where(used[:, None] & used[None, :], system, tl.where(same, 1.0, 0.0))
    right = tl.where(used, 1.0, 0.0)
    for p in tl.static_range(5):
        chosen = slot == p
        row = tl.sum(tl.where(chosen[:, None], system, 0.0), 0)
        column = tl.sum(tl.where(chosen[None, :], system, 0.0), 1)
        pivot = tl.sum(tl.where(chosen, row, 0.0), 0)
        known = tl.sum(tl.where(chosen, right, 0.0), 0) / pivot
        factor = tl.where(chosen, 0.0, column)
        right = tl.where(chosen, known, right - factor * known)
        row = row / pivot
        system = tl.where(chosen[:, None], row[None, :], system - factor[:, None] * row[None, :])
    return right / tl.sum(right, 0)


@triton.jit
def _iterate(
    matrix, extra, couplings, weights, diagonal, scratch, path, field, strength, keep, m, n, rank, split,
    max_steps, least_steps, damping, tol,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
    ANDERSON: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """m = tanh(field + strength J m), its residual and the steps taken. KEEP: path holds every state."""
    i = tl.arange(0, N)
    known = i < n
    if KEEP:
        tl.store(path + i, m, known)
    image = _product(matrix, extra, couplings, weights, diagonal, scratch, m, n, rank, split, N, R, ROWS, FORM)
    gap = _tanh(field + strength * image) * keep - m
    worst = tl.max(tl.abs(gap), 0)
    slot = tl.arange(0, SLOTS)
    states, gaps = tl.zeros((SLOTS, N), tl.float32), tl.zeros((SLOTS, N), tl.float32)
    gram = tl.zeros((SLOTS, SLOTS), tl.float32)
    part, length, count = damping * 1.0, float("inf"), 0
    while (count < max_steps) & ((worst > tol) | (count < least_steps)):
        if ANDERSON:
            longer = tl.sqrt(tl.sum(gap * gap, 0))
            part = tl.minimum(part * tl.where(longer > length, 0.5, 1.1), damping)
            length = longer
            chosen = slot == count % 5  # WINDOW of `spinformer.ising.anderson`
            states = tl.where(chosen[:, None], m[None, :], states)
            gaps = tl.where(chosen[:, None], gap[None, :], gaps)
            along = tl.sum(gaps * gap[None, :], 1)
            gram = tl.where(chosen[:, None], along[None, :], tl.where(chosen[None, :], along[:, None], gram))
            share = _mixing_weights(gram, tl.minimum(count + 1, 5))
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
    return m, worst, count


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
    size = n if FORM < FACTORS else rank
    couplings += sample * n * size
    narrow += sample * n * split
    weights += sample * rank
    diagonal += sample * n
    scratch += sample * n
    beta = tl.load(cold + sample)
    field = tl.load(fields + sample * n + i, known, 0.0) * beta
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + sample * n + i, known, 0).to(tl.float32)
    matrix, extra = _matrix(couplings, narrow, n, rank, split, N, R, ROWS, FORM)
    m = tl.load(start + sample * n + i, known, 0.0)
    m, worst, count = _iterate(
        matrix, extra, couplings, weights, diagonal, scratch, path + sample * (max_steps + 1) * n, field, beta, keep, m,
        n, rank, split,
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
    size = n if FORM < FACTORS else rank
    couplings += sample * n * size
    narrow += sample * n * split
    weights += sample * rank
    diagonal += sample * n
    scratch += sample * n
    beta = tl.load(cold + sample)
    field = tl.load(fields + sample * n + i, known, 0.0)
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + sample * n + i, known, 0).to(tl.float32)
    matrix, extra = _matrix(couplings, narrow, n, rank, split, N, R, ROWS, FORM)
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
