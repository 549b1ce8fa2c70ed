"""The leading eigenvector of a matrix of couplings by Lanczos' method, a sample in one program."""

import triton
import triton.language as tl

from spinformer.kernels.device.products import FACTORS, NARROW, _lines, _matrix, _product
from spinformer.kernels.device.spins import SLOTS, TINY

SAME = tl.constexpr(4e-7)  # a power of a matrix that moves less from one square to the next is its own square


@triton.jit
def _unit(x):
    """x / |x|; 0 stays 0."""
    return x / tl.maximum(tl.sqrt(tl.sum(x * x, 0)), TINY)


@triton.jit
def _largest(small):
    """The largest |number| of a matrix, at least TINY."""
    return tl.maximum(tl.max(tl.max(tl.abs(small), 1), 0), TINY)


@triton.jit
def _top(small):
    """The leading eigenvector of a matrix of SLOTS rows: a high power of it is the projector on such vectors."""
    slot = tl.arange(0, SLOTS)
    small = small / _largest(small)
    power, moved = 0, _largest(small)
    while (power < 30) & (moved > SAME):
        squared = tl.sum(small[:, :, None] * small[None, :, :], 1)
        squared = squared / _largest(squared)
        moved = _largest(squared - small)
        small = squared
        power += 1
    lengths = tl.sum(small * small, 0)
    best = slot == tl.argmax(lengths, 0)
    return tl.sum(tl.where(best[None, :], small, 0.0), 1)


@triton.jit
def top(small, result, size):
    """`_top` of the symmetric part of each matrix of `size` rows, at most SLOTS."""
    sample = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, SLOTS)
    known = (slot < size)[:, None] & (slot < size)[None, :]
    spot = small + sample * size * size
    upper = tl.load(spot + slot[:, None] * size + slot[None, :], known, 0.0)
    lower = tl.load(spot + slot[None, :] * size + slot[:, None], known, 0.0)
    tl.store(result + sample * size + slot, _top((upper + lower) / 2), slot < size)


@triton.jit
def _leading(
    matrix, extra, couplings, weights, diagonal, scratch, image, scale, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """The unit vector x of largest |x' J x| after SLOTS steps of Lanczos' method from |J 1|, and scale J x

    image: J 1; scale: brings J near 1.
    """
    known = tl.arange(0, N) < n
    slot = tl.arange(0, SLOTS)
    basis, images = tl.zeros((SLOTS, N), tl.float32), tl.zeros((SLOTS, N), tl.float32)
    small = tl.zeros((SLOTS, SLOTS), tl.float32)
    vector = _unit(tl.where(known, tl.abs(scale * image) + 1e-3, 0.0))
    for step in range(SLOTS):
        image = _product(matrix, extra, couplings, weights, diagonal, scratch, vector, n, rank, split, N, R, ROWS, FORM)
        image = scale * image
        chosen = slot == step
        basis = tl.where(chosen[:, None], vector[None, :], basis)
        images = tl.where(chosen[:, None], image[None, :], images)
        along = tl.sum(basis * image[None, :], 1)
        small = tl.where(chosen[None, :], along[:, None], small)  # x_k . J x_step of k <= step
        vector = image - tl.sum(basis * along[:, None], 0)
        along = tl.sum(basis * vector[None, :], 1)  # again, against rounding
        vector = vector - tl.sum(basis * along[:, None], 0)
        rest, whole = tl.sqrt(tl.sum(vector * vector, 0)), tl.sqrt(tl.sum(image * image, 0))
        vector = tl.where(rest > 1e-4 * whole, vector / tl.maximum(rest, TINY), 0.0)  # a smaller one is rounding
    small = small + tl.where(slot[:, None] > slot[None, :], tl.trans(small), 0.0)
    share = _top(small)
    x = tl.sum(basis * share[:, None], 0)
    length = tl.maximum(tl.sqrt(tl.sum(x * x, 0)), TINY)
    return x / length, tl.sum(images * share[:, None], 0) / length


@triton.jit
def leading(
    couplings, weights, diagonal, narrow, inverse_unit, scratch, result, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """`_leading` of each sample."""
    sample = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    size = n if FORM < FACTORS else (rank - split if FORM == NARROW else rank)
    couplings += sample * n * size
    narrow += sample * n * split
    weights += sample * rank
    diagonal += sample * n
    scratch += sample * n * _lines(ROWS, FORM)
    scale = tl.load(inverse_unit + sample)
    matrix, extra = _matrix(couplings, narrow, scratch, n, rank, split, N, R, ROWS, FORM)
    ones = (i < n).to(tl.float32)
    image = _product(matrix, extra, couplings, weights, diagonal, scratch, ones, n, rank, split, N, R, ROWS, FORM)
    x, _ = _leading(
        matrix, extra, couplings, weights, diagonal, scratch, image, scale, n, rank, split, N, R, ROWS, FORM
    )
    tl.store(result + sample * n + i, x, i < n)
