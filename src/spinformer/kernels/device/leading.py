"""The leading eigenvector of a matrix of couplings by Lanczos' method, a sample in one program."""

import triton
import triton.language as tl

from spinformer.kernels.device.spins import FACTORS, SLOTS, TINY, _matrix, _product


@triton.jit
def _unit(x):
    """x / |x|; 0 stays 0."""
    return x / tl.maximum(tl.sqrt(tl.sum(x * x, 0)), TINY)


@triton.jit
def _top(small):
    """The leading eigenvector of a matrix of SLOTS rows: a high power of it is the projector on such vectors."""
    slot = tl.arange(0, SLOTS)
    for power in range(30):
        small = tl.sum(small[:, :, None] * small[None, :, :], 1)
        small = small / tl.maximum(tl.max(tl.max(tl.abs(small), 1), 0), TINY)
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
    matrix, extra, couplings, weights, diagonal, scratch, scale, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """The unit vector of largest |x' J x| after SLOTS steps of Lanczos' method from |J 1|. scale: brings J near 1."""
    i = tl.arange(0, N)
    known = i < n
    slot = tl.arange(0, SLOTS)
    basis, images = tl.zeros((SLOTS, N), tl.float32), tl.zeros((SLOTS, N), tl.float32)
    ones = known.to(tl.float32)
    image = _product(matrix, extra, couplings, weights, diagonal, scratch, ones, n, rank, split, N, R, ROWS, FORM)
    vector = _unit(tl.where(known, tl.abs(scale * image) + 1e-3, 0.0))
    for step in range(SLOTS):
        image = _product(matrix, extra, couplings, weights, diagonal, scratch, vector, n, rank, split, N, R, ROWS, FORM)
        image = scale * image
        chosen = slot == step
        basis = tl.where(chosen[:, None], vector[None, :], basis)
        images = tl.where(chosen[:, None], image[None, :], images)
        vector = image
        for twice in tl.static_range(2):  # twice, against rounding
            along = tl.sum(basis * vector[None, :], 1)
            vector = vector - tl.sum(basis * along[:, None], 0)
        rest, whole = tl.sqrt(tl.sum(vector * vector, 0)), tl.sqrt(tl.sum(image * image, 0))
        vector = tl.where(rest > 1e-4 * whole, vector / tl.maximum(rest, TINY), 0.0)  # a smaller one is rounding
    small = tl.zeros((SLOTS, SLOTS), tl.float32)
    for place in tl.static_range(8):
        chosen = slot == place
        image = tl.sum(tl.where(chosen[:, None], images, 0.0), 0)
        along = tl.sum(basis * image[None, :], 1)
        small = tl.where(chosen[None, :], along[:, None], small)
    small = (small + tl.trans(small)) / 2
    share = _top(small)
    return _unit(tl.sum(basis * share[:, None], 0))


@triton.jit
def leading(
    couplings, weights, diagonal, narrow, inverse_unit, scratch, result, n, rank, split,
    N: tl.constexpr, R: tl.constexpr, ROWS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """`_leading` of each sample."""
    sample = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    size = n if FORM < FACTORS else rank
    couplings += sample * n * size
    narrow += sample * n * split
    weights += sample * rank
    diagonal += sample * n
    scratch += sample * n
    scale = tl.load(inverse_unit + sample)
    matrix, extra = _matrix(couplings, narrow, n, rank, split, N, R, ROWS, FORM)
    x = _leading(matrix, extra, couplings, weights, diagonal, scratch, scale, n, rank, split, N, R, ROWS, FORM)
    tl.store(result + sample * n + i, x, i < n)
