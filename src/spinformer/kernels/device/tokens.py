"""Tokens made ready to be read: each brought to mean 0 and variance 1, and rounded to 16 bits."""

import triton
import triton.language as tl


@triton.jit
def normed(x, out, inverse, rows, n, length, d, eps, ROWS: tl.constexpr, D: tl.constexpr):
    """y = (x - mean) / sqrt(variance + eps) of each token; inverse: 1 / the root

    x: texts of n tokens; y: room for texts of `length` tokens.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, D)
    there = (column < d)[None, :]
    keep = (row < rows)[:, None] & there
    tile = tl.load(x + row[:, None] * d + column[None, :], keep, 0.0).to(tl.float32)
    centred = tl.where(there, tile - tl.sum(tile, 1)[:, None] / d, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 1) / d + eps)
    place = row // n * length + row % n
    tl.store(out + place[:, None] * d + column[None, :], (centred * scale[:, None]).to(out.dtype.element_ty), keep)
    tl.store(inverse + row, scale, row < rows)


@triton.jit
def normed_backward(gradient, y, inverse, out, rows, n, length, d, ROWS: tl.constexpr, D: tl.constexpr):
    """dx = (g - mean(g) - y mean(g y)) / sqrt(variance + eps), from texts of `length` tokens for texts of n."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, D)
    keep = (row < rows)[:, None] & (column < d)[None, :]
    spot = (row // n * length + row % n)[:, None] * d + column[None, :]
    g, unit = tl.load(gradient + spot, keep, 0.0).to(tl.float32), tl.load(y + spot, keep, 0.0).to(tl.float32)
    along = tl.sum(g * unit, 1)[:, None] / d
    slope = (g - tl.sum(g, 1)[:, None] / d - unit * along) * tl.load(inverse + row, row < rows, 0.0)[:, None]
    tl.store(out + row[:, None] * d + column[None, :], slope.to(out.dtype.element_ty), keep)
