"""Players' vectors in 16 bits: sorted by attention head, within range, and the one product that makes their gradient.

`mapped` holds a row of `width` numbers for each token: the vectors of its H heads, d numbers each, and what follows.
Game b H + h is that of text b and head h.
"""

import triton
import triton.language as tl


@triton.jit
def ready(
    mapped, mask, unit, bias, vectors, squares, gate, n, heads, d, width,
    MASKED: tl.constexpr, GATED: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """v_i / unit, 0 at padding, |v_i / unit|^2, and lambda_i = sigmoid(w . x_i + b), 0 at padding."""
    game = tl.program_id(0).to(tl.int64)
    text, head = game // heads, game % heads
    size = tl.load(unit + game)
    i, column = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, D)
    known = i < n
    there = known.to(tl.float32)
    if MASKED:
        there = there * tl.load(mask + text * n + i, known, 0).to(tl.float32)
    total = tl.zeros((N,), tl.float32)
    for start in range(0, d, D):
        place = start + column
        keep = known[:, None] & (place < d)[None, :]
        spot = (text * n + i[:, None]) * width + head * d + place[None, :]
        tile = tl.load(mapped + spot, keep, 0.0).to(tl.float32) * (there / size)[:, None]
        tl.store(vectors + (game * n + i[:, None]) * d + place[None, :], tile.to(vectors.dtype.element_ty), keep)
        total += tl.sum(tile * tile, 1)
    tl.store(squares + game * n + i, total, known)
    if GATED:
        logit = tl.load(mapped + (text * n + i) * width + heads * d + head, known, 0.0).to(tl.float32)
        logit += tl.load(bias + head).to(tl.float32)
        tl.store(gate + game * n + i, there / (1 + tl.exp(-logit)), known)


@triton.jit
def halves(x, out, first, rows, parts, length, RIGHT: tl.constexpr, L: tl.constexpr):
    """Rows x = a + b of float32 numbers, a and b of bfloat16: a, a, b, or on the RIGHT a, b, a, (B, 3, P, length)

    So that the three products of such rows, one below the other, are a a' + a b' + b a'. x: (B, rows, length), of the P
    the first from `first` on.
    """
    row = tl.program_id(0).to(tl.int64)
    game, part = row // rows, first + row % rows
    place = tl.program_id(1) * L + tl.arange(0, L)
    known = place < length
    number = tl.load(x + row * length + place, known, 0.0)
    large = number.to(tl.bfloat16)
    small = (number - large.to(tl.float32)).to(tl.bfloat16)
    out += (game * 3 * parts + part) * length + place
    tl.store(out, large, known)
    tl.store(out + parts * length, small if RIGHT else large, known)
    tl.store(out + 2 * parts * length, large if RIGHT else small, known)


@triton.jit
def gathered(
    left, right, diagonal, whole, vectors, squares, scale, to_squares, to_scale, unit, mask, gate, to_gate, out,
    parts, n, heads, d, width,
    MASKED: tl.constexpr, DIAGONAL: tl.constexpr, WHOLE: tl.constexpr, GATED: tl.constexpr,
    N: tl.constexpr, D: tl.constexpr, P: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """(L' R + s V + G) / unit of a block of players and of columns, to where `mapped` had their vectors

    left: L, (B, P, n); right: R, (B, P, d); diagonal: s, (B, n), to which come 2 to_squares and what the scale,
    1 / sum of |v_i|, owes to v_i; whole: G, (B, n, d). GATED: also the gradient of w . x_i + b.
    """
    game = tl.program_id(0).to(tl.int64)
    text, head = game // heads, game % heads
    i, column = tl.program_id(1) * N + tl.arange(0, N), tl.program_id(2) * D + tl.arange(0, D)
    known = i < n
    keep = known[:, None] & (column < d)[None, :]
    left += game * parts * n
    right += game * parts * d
    sum_ = tl.zeros((N, D), tl.float32)
    for start in tl.range(0, parts, P, num_stages=STAGES):
        part = start + tl.arange(0, P)
        there = part < parts
        one = tl.load(left + part[:, None] * n + i[None, :], there[:, None] & known[None, :], 0.0)
        other = tl.load(right + part[:, None] * d + column[None, :], there[:, None] & (column < d)[None, :], 0.0)
        sum_ = tl.dot(tl.trans(one), other, sum_, input_precision="tf32x3")  # of numbers of 16 bits as they are
    place = game * n + i
    share = tl.load(scale + game)
    length = tl.sqrt(tl.load(squares + place, known, 0.0))
    by_length = -tl.load(to_scale + game) * share * share
    by_square = 2 * tl.load(to_squares + place, known, 0.0)
    by_square += tl.where(length > 0, by_length / tl.where(length > 0, length, 1.0), 0.0)
    if DIAGONAL:
        by_square += tl.load(diagonal + place, known, 0.0)
    spot = place[:, None] * d + column[None, :]
    sum_ += by_square[:, None] * tl.load(vectors + spot, keep, 0.0).to(tl.float32)
    if WHOLE:
        sum_ += tl.load(whole + spot, keep, 0.0)
    there = known.to(tl.float32)
    if MASKED:
        there = there * tl.load(mask + text * n + i, known, 0).to(tl.float32)
    sum_ = sum_ * (there / tl.load(unit + game))[:, None]
    row = (text * n + i) * width
    tl.store(out + row[:, None] + head * d + column[None, :], sum_.to(out.dtype.element_ty), keep)
    if GATED:
        if tl.program_id(2) == 0:
            part = tl.load(gate + place, known, 0.0)
            slope = tl.load(to_gate + place, known, 0.0) * part * (1 - part)
            tl.store(out + row + heads * d + head, slope.to(out.dtype.element_ty), known)


@triton.jit
def directions(
    products, inside, totals, squares, scale, out, weights, diagonal, n, draws, d, width, apart,
    N: tl.constexpr, K: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """A_ik = (S_k . v_i + (1/2 - c_ki) |v_i|^2) / |S_k| of a block of players, (B, n, width), 0 for k >= K

    And the weights, (B, d + width): d times c = mean over k of scale / |S_k|, then -scale / (K |S_k|), or 0; and the
    diagonal, c |v_i|^2 + sum of those times A_ik^2. inside: of a game and the next `apart` numbers apart.
    """
    game = tl.program_id(0).to(tl.int64)
    i, k = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, K)
    known, real = i < n, k < draws
    total = tl.load(totals + game * draws + k, real, 0.0)
    inverse = tl.where(total > 0, 1 / tl.sqrt(tl.where(total > 0, total, 1.0)), 0.0)
    place = k[:, None] * n + i[None, :]
    keep = real[:, None] & known[None, :]
    c = tl.load(inside + game * apart + place, keep, 0.0)
    product = tl.load(products + game * draws * n + place, keep, 0.0)
    square = tl.load(squares + game * n + i, known, 0.0)
    value = (product + (0.5 - c) * square[None, :]) * inverse[:, None]
    spot = (game * n + i)[:, None] * width + k[None, :]
    tl.store(out + spot, tl.trans(value), known[:, None] & (k < width)[None, :])
    size = tl.load(scale + game) / draws
    mean, weight = tl.sum(inverse, 0) * size, -size * inverse
    tl.store(diagonal + game * n + i, mean * square + tl.sum(value * value * weight[:, None], 0), known)
    if tl.program_id(1) == 0:
        weights += game * (d + width)
        column = tl.arange(0, R)
        for start in range(0, d, R):
            tl.store(weights + start + column, tl.zeros((R,), tl.float32) + mean, start + column < d)
        tl.store(weights + d + k, weight, k < width)


@triton.jit
def directions_backward(
    gradient, values, inside, totals, to_products, to_squares, norms, n, draws, width, blocks, apart,
    N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Gradients of S_k . v_i and |v_i|^2 from that of A; norms: this block's part of sum over i of g_ik A_ik."""
    game = tl.program_id(0).to(tl.int64)
    i, k = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, K)
    known, real = i < n, k < draws
    total = tl.load(totals + game * draws + k, real, 0.0)
    inverse = tl.where(total > 0, 1 / tl.sqrt(tl.where(total > 0, total, 1.0)), 0.0)
    spot = (game * n + i)[:, None] * width + k[None, :]
    there = known[:, None] & real[None, :]
    g, value = tl.load(gradient + spot, there, 0.0), tl.load(values + spot, there, 0.0)
    tl.store(norms + (game * blocks + tl.program_id(1)) * draws + k, tl.sum(g * value, 0), real)
    slope = tl.trans(g * inverse[None, :])
    place = k[:, None] * n + i[None, :]
    keep = real[:, None] & known[None, :]
    tl.store(to_products + game * draws * n + place, slope, keep)
    c = tl.load(inside + game * apart + place, keep, 0.0)
    tl.store(to_squares + game * n + i, tl.sum((0.5 - c) * slope, 0), known)
