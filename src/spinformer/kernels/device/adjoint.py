"""Gradients at a fixed point of the mean-field equations, by conjugate gradients, a sample in one program.

The equations are those of `spinformer.ising.implicit`.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.products import FACTORS, NARROW, _lines, _matrix, _product
from spinformer.kernels.device.spins import TINY, _tanh

CONJUGATE_STEPS = tl.constexpr(100)
ROUNDING = tl.constexpr(8 * 1.1920929e-07)
ACCURACY = tl.constexpr(1e-4)


@triton.jit
def _curved(
    matrix, extra, couplings, weights, diagonal, scratch, v, root, beta, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """(I - D^1/2 J D^1/2 cold) v, and J D^1/2 v."""
    image = _product(matrix, extra, couplings, weights, diagonal, scratch, root * v, n, rank, split, N, R, ROWS, FORM)
    return v - beta * root * image, image


@triton.jit
def _conjugate(
    matrix, extra, couplings, weights, diagonal, scratch, right, root, beta, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    """x with A x = right, or A^2 x = right; J D^1/2 x, unless TWICE; and whether it is solved."""
    x, pushed, r, p = tl.zeros((N,), tl.float32), tl.zeros((N,), tl.float32), right, right
    square = tl.sum(r * r, 0)
    goal, enough = square * ROUNDING * ROUNDING, square * ACCURACY * ACCURACY
    active, count = square > goal, 0
    while active & (count < CONJUGATE_STEPS):
        image, along = _curved(
            matrix, extra, couplings, weights, diagonal, scratch,
            p, root, beta, n, rank, split, N, R, ROWS, FORM,
        )  # fmt: skip
        if TWICE:
            image, _ = _curved(
                matrix, extra, couplings, weights, diagonal, scratch,
                image, root, beta, n, rank, split, N, R, ROWS, FORM,
            )  # fmt: skip
        curvature = tl.sum(p * image, 0)
        positive = curvature > 0
        step = tl.where(positive, square / tl.where(positive, curvature, 1.0), 0.0)
        x += step * p
        pushed += step * along
        r -= step * image
        following = tl.sum(r * r, 0)
        p = r + following / tl.maximum(square, TINY) * p
        square = following
        active = positive & (square > goal)
        count += 1
    return x, pushed, square <= enough


@triton.jit
def _pulled(
    matrix, extra, couplings, weights, diagonal, scratch, g, m, moved, field, strength, keep, arrived, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """The gradient of field + strength J m, at the fixed point m = tanh of it; and whether the sample is solved.

    moved: J m. By conjugate gradients, at a saddle those of the squared matrix. A sample that is not solved gets 0.
    """
    root = tl.sqrt(tl.maximum(1 - m * m, 0.0)) * keep
    right = tl.where(arrived, root * g, 0.0)
    x, image, good = _conjugate(
        matrix, extra, couplings, weights, diagonal, scratch, right, root, strength,
        n, rank, split, N, R, ROWS, FORM, False,
    )  # fmt: skip
    if not good:
        again, _ = _curved(
            matrix, extra, couplings, weights, diagonal, scratch,
            right, root, strength, n, rank, split, N, R, ROWS, FORM,
        )  # fmt: skip
        x, image, good = _conjugate(
            matrix, extra, couplings, weights, diagonal, scratch, again, root, strength,
            n, rank, split, N, R, ROWS, FORM, True,
        )  # fmt: skip
        mapped, image = _curved(
            matrix, extra, couplings, weights, diagonal, scratch,
            x, root, strength, n, rank, split, N, R, ROWS, FORM,
        )  # fmt: skip
        rest = mapped - right
        good = tl.sum(rest * rest, 0) <= ACCURACY * ACCURACY * tl.sum(right * right, 0)
    spin = _tanh(field + strength * moved)
    solved = good & arrived
    pulled = tl.where(solved, (g + strength * image * keep) * (1 - spin * spin) * keep, 0.0)
    return pulled, solved


@triton.jit
def adjoint(
    gradient, fields, couplings, weights, diagonal, narrow, cold, state, residual, mask, scratch,
    to_fields, to_cold, solved, n, rank, split, tol,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Gradients of the fields and of cold, at the fixed point m = tanh(cold (h + J m))."""
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
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + sample * n + i, known, 0).to(tl.float32)
    matrix, extra = _matrix(couplings, narrow, scratch, n, rank, split, N, R, ROWS, FORM)
    g, m = tl.load(gradient + sample * n + i, known, 0.0), tl.load(state + sample * n + i, known, 0.0)
    field = tl.load(fields + sample * n + i, known, 0.0)
    arrived = tl.load(residual + sample) <= tol
    moved = _product(matrix, extra, couplings, weights, diagonal, scratch, m, n, rank, split, N, R, ROWS, FORM)
    pulled, good = _pulled(
        matrix, extra, couplings, weights, diagonal, scratch, g, m, moved, field * beta, beta, keep, arrived,
        n, rank, split, N, R, ROWS, FORM,
    )  # fmt: skip
    tl.store(to_fields + sample * n + i, beta * pulled, known)
    tl.store(to_cold + sample, tl.sum(pulled * (field + moved), 0))
    tl.store(solved + sample, good.to(tl.int8))
