"""Shapley and Banzhaf values of a norm game: coalitions made on the device, marginals less those of a control variate.

The control variate h(C) = a_s + b_s |S_C|^2 of `spinformer.games.control`, s = |C|, has for the norm game itself

    a_s = scale r_s / 2,   b_s = scale / (2 r_s),   r_s^2 = u_s = max(s/n G + s(s-1)/(n(n-1)) P, FLOOR s/n G),

a_0 = b_0 = 0. With t = |T|, u = |S_T|^2 and gain = |S_T + v_i|^2 - u, Delta_i h(T) = a' + b' u + b_(t+1) gain, where
a' = a_(t+1) - a_t and b' = b_(t+1) - b_t. G: the sum of |v_i|^2; P: that of v_i . v_j over i != j; n: players.
"""

import triton
import triton.language as tl

FLOOR = tl.constexpr(1e-2)
BY_COUNT, BY_GAME = tl.constexpr(0), tl.constexpr(1)


@triton.jit
def _row(players, game, ROW: tl.constexpr):
    """The row of a table of chances: that of the number of players, of the game, or the only one."""
    if ROW == BY_COUNT:
        return tl.maximum(players, 0).to(tl.int64)
    if ROW == BY_GAME:
        return game
    return game * 0


@triton.jit
def _mix(x):
    """Ettinger's hash of 32 bits, as in `spinformer._base.rng`."""
    x = (x ^ (x >> 16)) * 0x21F0AAAD
    x = (x ^ (x >> 15)) * 0x735A2D97
    return x ^ (x >> 15)


@triton.jit
def _lane(code, salt, row, draw):
    start = _mix(code + salt)
    start = _mix(start + row * 0x9E3779B9)
    return _mix(start + draw * 2 + salt)


@triton.jit
def _uniform(first, second, column):
    bits = _mix(_mix(column + first) + second)
    return ((bits >> 8).to(tl.float32) + 0.5) * 5.9604644775390625e-08


@triton.jit
def coalitions(
    seed, rank, mask, inside, n, budget,
    RANKED: tl.constexpr, MASKED: tl.constexpr, SHARED: tl.constexpr,
    K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Membership, (B, 2 K + 1, n): K coalitions of SV from the seed, K of BV from the seed + 1, and all.

    Each odd one is the reflection of the one before.
    """
    game = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * N + tl.arange(0, N)
    known = i < n
    k = tl.arange(0, K)
    banzhaf = k >= budget
    draw = tl.where(banzhaf, k - budget, k)
    odd = (draw & 1) == 1
    code = tl.load(seed) + banzhaf.to(tl.int64)
    low, high = (code & 0xFFFFFFFF).to(tl.uint32), (code >> 32).to(tl.uint32)
    row = game.to(tl.uint32)
    if SHARED:
        row = row * 0
    pair = (draw >> 1).to(tl.uint32)
    first, second = _lane(low, 0, row, pair), _lane(high, 1, row, pair)
    place = i.to(tl.uint32)
    if RANKED:
        place = tl.load(rank + game * n + i, known, 0).to(tl.uint32)
    coin = _uniform(first[:, None], second[:, None], place[None, :] + 1)
    bias = _uniform(first, second, tl.zeros((K,), tl.uint32))
    coin = tl.where(odd[:, None], 1 - coin, coin)
    bias = tl.where(banzhaf, 0.5, tl.where(odd, 1 - bias, bias))
    member = (coin < bias[:, None]) | (k == 2 * budget)[:, None]
    if MASKED:
        member = member & (tl.load(mask + game * n + i, known, 0).to(tl.int32) != 0)[None, :]
    keep = (k <= 2 * budget)[:, None] & known[None, :]
    tl.store(inside + (game * (2 * budget + 1) + k[:, None]) * n + i[None, :], member.to(tl.float32), keep)


@triton.jit
def _level(size, count, squares, pairs):
    """u_s, and whether the floor holds it up."""
    one = size / tl.maximum(count, 1)
    two = size * (size - 1) / tl.maximum(count * (count - 1), 1)
    spread = one * squares
    raw = spread + two * pairs
    return tl.maximum(raw, FLOOR * spread), one, two, raw <= FLOOR * spread


@triton.jit
def _inverse(x):
    return tl.where(x > 0, 1 / tl.where(x > 0, x, 1.0), 0.0)


@triton.jit
def _tangent(t, count, squares, pairs, scale):
    """a', b' and b_(t+1) for |T| = t; 0 beyond the players."""
    upper, one, two, held = _level(t + 1, count, squares, pairs)
    lower, one0, two0, held0 = _level(t, count, squares, pairs)
    high, low = tl.sqrt(tl.maximum(upper, 0.0)), tl.sqrt(tl.maximum(lower, 0.0))
    first = t < 0.5
    change = upper - lower
    step = tl.where(first, high, change * _inverse(high + low))
    bend = tl.where(first, _inverse(high), -change * _inverse(high * low * (high + low)))
    inside = (t >= 0) & (t < count)
    half = tl.where(inside, scale / 2, 0.0)
    return half * step, half * bend, half * _inverse(high)


@triton.jit
def scalars(
    sums, inside, squares, scale, chances, counts, totals, sizes, out, tangents,
    n, d, draws, width, ROW: tl.constexpr, COUNTED: tl.constexpr, K: tl.constexpr, D: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Of one game: |S_k|^2, |C_k|, and with G, P and n the ten means of the control variate, SV's and BV's

    And tangents, eight numbers for each coalition: a', b' and b_(t+1) for t = |C_k|, and for t = |C_k| - 1. chances:
    P(|T| = t) of BV, float64, in rows of `width`; ROW: which row is a game's; COUNTED: |C_k| is known.
    """
    game = tl.program_id(0).to(tl.int64)
    k, column, i = tl.arange(0, K), tl.arange(0, D), tl.arange(0, N)
    total = tl.zeros((K,), tl.float32)
    for start in range(0, d, D):
        place = start + column
        keep = (k < draws)[:, None] & (place < d)[None, :]
        part = tl.load(sums + (game * draws + k[:, None]) * d + place[None, :], keep, 0.0)
        total += tl.sum(part * part, 1)
    whole = tl.zeros((N,), tl.float64)
    for start in range(0, n, N):
        place = start + i
        whole += tl.load(squares + game * n + place, place < n, 0.0).to(tl.float64)
    tl.store(totals + game * draws + k, total, k < draws)
    if COUNTED:
        size = tl.load(sizes + game * draws + k, k < draws, 0.0)
    else:
        members = tl.zeros((K, N), tl.float32)
        for start in range(0, n, N):
            place = start + i
            keep = (k < draws)[:, None] & (place < n)[None, :]
            members += tl.load(inside + (game * draws + k[:, None]) * n + place[None, :], keep, 0.0)
        size = tl.sum(members, 1)
        tl.store(sizes + game * draws + k, size, k < draws)
    last = k == draws - 1
    all_squares = tl.sum(whole, 0)
    all_pairs = tl.sum(tl.where(last, total.to(tl.float64), 0.0), 0) - all_squares
    count = tl.load(counts + game).to(tl.float64)
    sigma = tl.load(scale + game).to(tl.float64)
    for less in tl.static_range(2):
        change, bent, tilt = _tangent(size.to(tl.float64) - less, count, all_squares, all_pairs, sigma)
        spot = tangents + (game * draws + k) * 8 + 3 * less
        tl.store(spot, change.to(tl.float32), k < draws)
        tl.store(spot + 1, bent.to(tl.float32), k < draws)
        tl.store(spot + 2, tilt.to(tl.float32), k < draws)
    others = count - 1
    row = _row(tl.load(counts + game), game, ROW) * width
    zero = tl.zeros((N,), tl.float64)
    s0, s1, s2, s3, s4 = zero, zero, zero, zero, zero
    z0, z1, z2, z3, z4 = zero, zero, zero, zero, zero
    for start in range(0, n, N):
        place = start + i
        t = place.to(tl.float64)
        step, bend, slope = _tangent(t, count, all_squares, all_pairs, sigma)
        one = t / tl.maximum(others, 1)
        two = t * (t - 1) / tl.maximum(others * (others - 1), 1)
        even = tl.where(t < count, 1 / tl.maximum(count, 1), 0.0)
        fair = tl.load(chances + row + place, place < n, 0.0)
        s0 += even * step
        s1 += even * bend * one
        s2 += even * bend * two
        s3 += even * slope
        s4 += even * slope * one
        z0 += fair * step
        z1 += fair * bend * one
        z2 += fair * bend * two
        z3 += fair * slope
        z4 += fair * slope * one
    out += game * 16
    tl.store(out + 0, tl.sum(s0, 0).to(tl.float32))
    tl.store(out + 1, tl.sum(s1, 0).to(tl.float32))
    tl.store(out + 2, tl.sum(s2, 0).to(tl.float32))
    tl.store(out + 3, tl.sum(s3, 0).to(tl.float32))
    tl.store(out + 4, tl.sum(s4, 0).to(tl.float32))
    tl.store(out + 5, tl.sum(z0, 0).to(tl.float32))
    tl.store(out + 6, tl.sum(z1, 0).to(tl.float32))
    tl.store(out + 7, tl.sum(z2, 0).to(tl.float32))
    tl.store(out + 8, tl.sum(z3, 0).to(tl.float32))
    tl.store(out + 9, tl.sum(z4, 0).to(tl.float32))
    tl.store(out + 10, all_squares.to(tl.float32))
    tl.store(out + 11, all_pairs.to(tl.float32))


@triton.jit
def _around(c, product, q, total, size):
    """gain and u around T = C - i, for a block of coalitions and a block of players."""
    gain = q[None, :] + 2 * (product - c * q[None, :])
    square = tl.maximum(total[:, None] - c * gain, 0.0)
    return gain, tl.where(size[:, None] - c > 0.5, square, 0.0)


@triton.jit
def _several(inside, products, totals, sizes, tangents, k, real, i, n):
    """Of coalitions k: membership, S_k . v_i, |S_k|^2, |C_k|, and a', b' and b_(t+1) as each player meets them."""
    known = real[:, None] & (i < n)[None, :]
    place = k[:, None] * n + i[None, :]
    c, product = tl.load(inside + place, known, 0.0), tl.load(products + place, known, 0.0)
    total, size = tl.load(totals + k, real, 0.0), tl.load(sizes + k, real, 0.0)
    out, spot = c < 0.5, tangents + k * 8
    step = tl.where(out, tl.load(spot, real, 0.0)[:, None], tl.load(spot + 3, real, 0.0)[:, None])
    bend = tl.where(out, tl.load(spot + 1, real, 0.0)[:, None], tl.load(spot + 4, real, 0.0)[:, None])
    slope = tl.where(out, tl.load(spot + 2, real, 0.0)[:, None], tl.load(spot + 5, real, 0.0)[:, None])
    return c, product, total, size, step, bend, slope


@triton.jit
def marginals(
    inside, products, squares, totals, sizes, scale, tangents, means, mask, result,
    n, budget, MASKED: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """SV and BV of a block of players: the mean of what the control variate misses, and its own index."""
    game = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * N + tl.arange(0, N)
    known = i < n
    draws = 2 * budget + 1
    sigma = tl.load(scale + game)
    means += game * 16
    inside += game * draws * n
    products += game * draws * n
    totals += game * draws
    sizes += game * draws
    tangents += game * draws * 8
    all_squares, all_pairs = tl.load(means + 10), tl.load(means + 11)
    q = tl.load(squares + game * n + i, known, 0.0)
    across = tl.load(products + 2 * budget * n + i, known, 0.0) - q
    for index in tl.static_range(2):
        rest = tl.zeros((N,), tl.float32)
        for start in range(0, budget, K):
            draw = start + tl.arange(0, K)
            real = draw < budget
            c, product, total, size, step, bend, slope = _several(
                inside, products, totals, sizes, tangents, index * budget + draw, real, i, n
            )
            gain, square = _around(c, product, q, total, size)
            low, high = tl.sqrt(square), tl.sqrt(tl.maximum(square + gain, 0.0))
            missed = sigma * gain * _inverse(low + high) - (step + bend * square + slope * gain)
            rest += tl.sum(tl.where(real[:, None], missed, 0.0), 0)
        c0, c1, c2 = tl.load(means + 5 * index), tl.load(means + 5 * index + 1), tl.load(means + 5 * index + 2)
        c3, c4 = tl.load(means + 5 * index + 3), tl.load(means + 5 * index + 4)
        closed = c0 + c1 * (all_squares - q) + c2 * (all_pairs - 2 * across) + c3 * q + 2 * c4 * across
        value = rest / budget + closed
        if MASKED:
            value = value * tl.load(mask + game * n + i, known, 0).to(tl.float32)
        tl.store(result + (game * 2 + index) * n + i, value, known)
