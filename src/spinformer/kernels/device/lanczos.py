"""Lanczos' method for couplings too large for one program: what comes between products, a sample in one program.

basis, images: the vectors x_k so far and J x_k, (B, SLOTS, n), numbers near 1.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.leading import _top
from spinformer.kernels.device.spins import SLOTS, TINY


@triton.jit(do_not_specialize=["step"])
def next_vector(image, inverse_unit, basis, images, out, n, step, FIRST: tl.constexpr, N: tl.constexpr):
    """The unit vector of what J x has beyond the basis, at most rounding counts as 0; FIRST: of |J x| + 1e-3

    image: J x, of the vector that was found last. out: the new vector.
    """
    sample = tl.program_id(0).to(tl.int64)
    i, slot = tl.arange(0, N), tl.arange(0, SLOTS)
    known = i < n
    there = (slot <= step)[:, None] & known[None, :]
    spot = sample * SLOTS * n + slot[:, None] * n + i[None, :]
    y = tl.load(image + sample * n + i, known, 0.0) * tl.load(inverse_unit + sample)
    if FIRST:
        y = tl.where(known, tl.abs(y) + 1e-3, 0.0)
        y = y / tl.maximum(tl.sqrt(tl.sum(y * y, 0)), TINY)
        tl.store(basis + sample * SLOTS * n + i, y, known)
    else:
        tl.store(images + (sample * SLOTS + step) * n + i, y, known)
        vectors = tl.load(basis + spot, there, 0.0)
        whole = tl.sqrt(tl.sum(y * y, 0))
        for _twice in tl.static_range(2):  # against rounding
            along = tl.sum(vectors * y[None, :], 1)
            y = y - tl.sum(vectors * along[:, None], 0)
        rest = tl.sqrt(tl.sum(y * y, 0))
        y = tl.where(rest > whole * 1e-4, y / tl.maximum(rest, TINY), 0.0)
        if step < SLOTS - 1:
            tl.store(basis + (sample * SLOTS + step + 1) * n + i, y, known)
    tl.store(out + sample * n + i, y, known)


@triton.jit
def combine(basis, images, out, n, N: tl.constexpr):
    """The unit vector of largest |x' J x| in the span of the basis."""
    sample = tl.program_id(0).to(tl.int64)
    i, slot = tl.arange(0, N), tl.arange(0, SLOTS)
    known = i < n
    spot = sample * SLOTS * n + slot[:, None] * n + i[None, :]
    vectors = tl.load(basis + spot, known[None, :], 0.0)
    small = tl.zeros((SLOTS, SLOTS), tl.float32)
    for place in tl.static_range(8):
        image = tl.load(images + (sample * SLOTS + place) * n + i, known, 0.0)
        along = tl.sum(vectors * image[None, :], 1)
        small = tl.where((slot == place)[None, :], along[:, None], small)
    share = _top((small + tl.trans(small)) / 2)
    x = tl.sum(vectors * share[:, None], 0)
    tl.store(out + sample * n + i, x / tl.maximum(tl.sqrt(tl.sum(x * x, 0)), TINY), known)
