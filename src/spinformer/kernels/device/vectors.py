"""Players' vectors made ready for their game: 0 at padding, within range, with their squared lengths."""

import triton
import triton.language as tl


@triton.jit
def _power_of_two(size):
    """The one just below the size where that is far from 1, else 1, as `spinformer._base.precision.power_of_two`."""
    exponent = tl.minimum(tl.maximum(tl.floor(tl.log2(tl.maximum(size, 1e-37))), -100.0), 100.0)
    return tl.where(tl.abs(exponent) > 30.5, tl.exp2(exponent), 1.0)


@triton.jit
def largest(mapped, out, n, heads, d, width, N: tl.constexpr, D: tl.constexpr):
    """max over d of |v_id| of a block of players, NaN where one is

    mapped: a row of `width` numbers for each token of a text, d for each of its attention heads, and what follows; game
    b H + h is that of text b and head h.
    """
    game = tl.program_id(0).to(tl.int64)
    text, head = game // heads, game % heads
    i, column = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, D)
    known = i < n
    most = tl.zeros((N,), tl.float32)
    for start in range(0, d, D):
        place = start + column
        keep = known[:, None] & (place < d)[None, :]
        spot = (text * n + i[:, None]) * width + head * d + place[None, :]
        most = tl.maximum(most, tl.max(tl.abs(tl.load(mapped + spot, keep, 0.0).to(tl.float32)), 1))
    tl.store(out + game * n + i, most, known)


@triton.jit
def units(most, out, n, N: tl.constexpr):
    """The power of two just below the largest number of a game where that is far from 1, else 1."""
    game = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    top = tl.zeros((N,), tl.float32)
    for start in range(0, n, N):
        top = tl.maximum(top, tl.load(most + game * n + start + i, start + i < n, 0.0))
    tl.store(out + game, _power_of_two(tl.max(top, 0)))


@triton.jit
def ready(values, mask, unit, out, squares, n, d, MASKED: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """v_i / unit, 0 at padding, and |v_i / unit|^2."""
    game = tl.program_id(0).to(tl.int64)
    i, column = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, D)
    known = i < n
    factor = known.to(tl.float32) / tl.load(unit + game)
    if MASKED:
        factor = factor * tl.load(mask + game * n + i, known, 0).to(tl.float32)
    total = tl.zeros((N,), tl.float32)
    for start in range(0, d, D):
        place = start + column
        keep = known[:, None] & (place < d)[None, :]
        spot = (game * n + i[:, None]) * d + place[None, :]
        tile = tl.load(values + spot, keep, 0.0).to(tl.float32) * factor[:, None]
        tl.store(out + spot, tile, keep)
        total += tl.sum(tile * tile, 1)
    tl.store(squares + game * n + i, total, known)


@triton.jit
def shares(squares, out, n, N: tl.constexpr):
    """1 / sum over i of |v_i|, 1e-30 where all are 0."""
    game = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for start in range(0, n, N):
        total += tl.sqrt(tl.load(squares + game * n + start + i, start + i < n, 0.0))
    longest = tl.sum(total, 0)
    tl.store(out + game, tl.where(longest > 0, 1 / tl.where(longest > 0, longest, 1.0), 1e-30))


@triton.jit
def ready_backward(
    to_vectors, to_squares, to_scale, vectors, squares, scale, unit, mask, out,
    n, d, MASKED: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The gradient of the values from those of the vectors, of their squares and of 1 / the sum of lengths."""
    game = tl.program_id(0).to(tl.int64)
    i, column = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, D)
    known = i < n
    factor = known.to(tl.float32) / tl.load(unit + game)
    if MASKED:
        factor = factor * tl.load(mask + game * n + i, known, 0).to(tl.float32)
    share = tl.load(scale + game)
    length = tl.sqrt(tl.load(squares + game * n + i, known, 0.0))
    by_length = -tl.load(to_scale + game) * share * share
    by_square = 2 * tl.load(to_squares + game * n + i, known, 0.0)
    by_square += tl.where(length > 0, by_length / tl.where(length > 0, length, 1.0), 0.0)
    for start in range(0, d, D):
        place = start + column
        keep = known[:, None] & (place < d)[None, :]
        spot = (game * n + i[:, None]) * d + place[None, :]
        tile = tl.load(to_vectors + spot, keep, 0.0) + by_square[:, None] * tl.load(vectors + spot, keep, 0.0)
        tl.store(out + spot, tile * factor[:, None], keep)
