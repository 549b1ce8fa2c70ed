"""Shapley and Banzhaf values of a norm game: coalitions made on the device, marginals less those of a control variate.

The control variate h(C) = a_s + b_s |S_C|^2 of `spinformer.games.control`, s = |C|, has for the norm game itself

    a_s = scale r_s / 2,   b_s = scale / (2 r_s),   r_s^2 = u_s = max(s/n G + s(s-1)/(n(n-1)) P, FLOOR s/n G),

a_0 = b_0 = 0. With t = |T|, u = |S_T|^2 and gain = |S_T + v_i|^2 - u, Delta_i h(T) = a' + b' u + b_(t+1) gain, where
a' = a_(t+1) - a_t and b' = b_(t+1) - b_t. G: the sum of |v_i|^2; P: that of v_i . v_j over i != j; n: players.

Around C, T = C - i and x = 2 z S_C . v_i + |v_i|^2 with z = -1 for members, else 1: r^2 = |S_C|^2 + x is the squared
length without i of members, and with i of others, so that both differences are linear in x but for one root,

    Delta_i v - Delta_i h = scale z x / (|S_C| + r) + slope x - base,

base = a' + b' |S_C|^2, slope = b_(t+1) - b' of members, -b_(t+1) of others.
Coalitions have slots, SV's first, then BV's, each an even number for their pairs; bits: membership, 32 slots a word.
"""

import triton
import triton.language as tl

FLOOR = tl.constexpr(1e-2)
BY_COUNT, BY_GAME = tl.constexpr(0), tl.constexpr(1)
TINY = tl.constexpr(1e-36)
SLOTS = tl.constexpr(32)  # of a word
# numbers of a slot: of others and of members, base, slope and b'; |S_C|^2, -inf where nobody would be left; |C|
BASE, SLOPE, BEND, TOTAL, LEFT, SIZE, NUMBERS = (tl.constexpr(number) for number in (0, 2, 4, 6, 7, 8, 9))


@triton.jit
def _row(players, game, ROW: tl.constexpr):
    """The row of a table of chances: that of the number of players, of the game, or the only one."""
    if ROW == BY_COUNT:
        return tl.maximum(players, 0).to(tl.int64)
    if ROW == BY_GAME:
        return game
    return game * 0


@triton.jit
def _inverse(x):
    return tl.where(x > 0, 1 / tl.where(x > 0, x, 1.0), 0.0)


@triton.jit
def _root(x):
    """sqrt(x) and its inverse, by a root in float32 and a step of Newton's method in float64; 0 up to TINY."""
    inverse = tl.rsqrt(tl.maximum(x, TINY).to(tl.float32)).to(tl.float64)
    inverse = tl.where(x > TINY, inverse * (1.5 - 0.5 * x * inverse * inverse), 0.0)
    return x * inverse, inverse


@triton.jit
def _level(size, count, squares, pairs):
    """s/n, s(s-1)/(n(n-1)), whether the floor holds u_s up, u_s, its root and 1 / its root."""
    one = size * (1 / tl.maximum(count, 1))
    two = size * (size - 1) * (1 / tl.maximum(count * (count - 1), 1))
    spread = one * squares
    raw = spread + two * pairs
    level = tl.maximum(raw, FLOOR * spread)
    root, inverse = _root(level)
    return one, two, raw <= FLOOR * spread, level, root, inverse


@triton.jit
def _between(t, count, upper, high, up, lower, low, down, scale):
    """a', b' and b_(t+1) from both levels, their roots and the inverses of these; 0 beyond the players."""
    both = tl.maximum(high + low, 1e-18)
    less = (1 / both.to(tl.float32)).to(tl.float64)
    step = (upper - lower) * less * (2 - both * less)
    bend = tl.where(t < 0.5, up, -step * up * down)
    half = tl.where((t >= 0) & (t < count), scale / 2, 0.0)
    return half * step, half * bend, half * up


@triton.jit
def _tangent(t, count, squares, pairs, scale):
    """a', b' and b_(t+1) for |T| = t; 0 beyond the players."""
    _one, _two, _held, upper, high, up = _level(t + 1, count, squares, pairs)
    _one, _two, _held, lower, low, down = _level(t, count, squares, pairs)
    return _between(t, count, upper, high, up, lower, low, down, scale)


@triton.jit
def _coalitions(slot, budget):
    """Of slots: whether there is such a coalition, whether it is BV's, and its place among all."""
    half = 2 * ((budget + 1) // 2)
    banzhaf = slot >= half
    draw = tl.where(banzhaf, slot - half, slot)
    return draw < budget, banzhaf, tl.where(banzhaf, draw + budget, draw)


@triton.jit
def _rows(
    sums, bits, squared, tangents, game, chunk, count, all_squares, all_pairs, sigma,
    n, d, budget, K: tl.constexpr, D: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """What `scalars` finds of the coalitions of K slots."""
    slot, column, i = chunk * K + tl.arange(0, K), tl.arange(0, D), tl.arange(0, N)
    words = tl.cdiv(4 * ((budget + 1) // 2), SLOTS)
    real, banzhaf, k = _coalitions(slot, budget)
    squared_sums, members = tl.zeros((K, D), tl.float32), tl.zeros((K, N), tl.int32)
    for start in range(0, d, D):
        place = start + column
        keep = real[:, None] & (place < d)[None, :]
        part = tl.load(sums + (game * (2 * budget + 1) + k[:, None]) * d + place[None, :], keep, 0.0)
        squared_sums += part * part
    for start in range(0, n, N):
        place = start + i
        word = tl.load(bits + (game * words + chunk * K // SLOTS) * n + place, place < n, 0)
        members += (word[None, :] >> (slot % SLOTS)[:, None]) & 1
    total, size = tl.sum(squared_sums, 1), tl.sum(members, 1)
    tl.store(squared + game * budget + k - budget, total, real & banzhaf)
    spot, width = tangents + game * NUMBERS * words * SLOTS + slot, words * SLOTS
    for member in tl.static_range(2):
        step, bend, tilt = _tangent(size.to(tl.float64) - member, count, all_squares, all_pairs, sigma)
        base, slope = step + bend * total, tilt * (2 * member - 1) - bend * member
        tl.store(spot + (BASE + member) * width, tl.where(real, base, 0.0).to(tl.float32))
        tl.store(spot + (SLOPE + member) * width, tl.where(real, slope, 0.0).to(tl.float32))
        tl.store(spot + (BEND + member) * width, tl.where(real, bend, 0.0).to(tl.float32))
    tl.store(spot + TOTAL * width, total)
    tl.store(spot + LEFT * width, tl.where(size == 1, float("-inf"), total))
    tl.store(spot + SIZE * width, size.to(tl.float32))


@triton.jit
def _closed(chances, means, index, count, all_squares, all_pairs, sigma, n, N: tl.constexpr):
    """What `scalars` finds of the control variate's own index, of SV or of BV."""
    single = 1 / tl.maximum(count - 1, 1)
    double = 1 / tl.maximum((count - 1) * (count - 2), 1)
    alike = 1 / tl.maximum(count, 1)
    zero = tl.zeros((N,), tl.float64)
    s0, s1, s2, s3, s4 = zero, zero, zero, zero, zero
    for start in range(0, n, N):
        place = start + tl.arange(0, N)
        t = place.to(tl.float64)
        step, bend, slope = _tangent(t, count, all_squares, all_pairs, sigma)
        one, two = t * single, t * (t - 1) * double
        chance = tl.load(chances + place, (place < n) & (index == 1), 0.0)
        chance = tl.where((index == 0) & (t < count), alike, chance)
        s0 += chance * step
        s1 += chance * bend * one
        s2 += chance * bend * two
        s3 += chance * slope
        s4 += chance * slope * one
    bend_one, bend_two = tl.sum(s1, 0), tl.sum(s2, 0)
    constant = tl.sum(s0, 0) + bend_one * all_squares + bend_two * all_pairs
    means += 5 * index
    tl.store(means, constant.to(tl.float32))
    tl.store(means + 1, (tl.sum(s3, 0) - bend_one).to(tl.float32))
    tl.store(means + 2, (2 * (tl.sum(s4, 0) - bend_two)).to(tl.float32))
    tl.store(means + 3, bend_one.to(tl.float32))
    tl.store(means + 4, bend_two.to(tl.float32))


@triton.jit
def scalars(
    sums, bits, squares, scale, chances, counts, squared, grand, means, tangents,
    n, d, budget, width, chunks, ROW: tl.constexpr, K: tl.constexpr, D: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Of one game: NUMBERS numbers of the coalitions of every slot, `tangents`; and of the control variate, `means`

    For SV and for BV: index_i h = constant + by_square |v_i|^2 + by_across v_i . sum of others, those three numbers,
    the means of b' s/n and of b' s(s-1)/(n(n-1)) of the others; then G and P. squared: |S_k|^2 of BV's coalitions;
    grand: that of all. chances: P(|T| = t) of BV, float64, in rows of `width`; ROW: which row is a game's. The programs
    of a game: `chunks`, one for every K slots, and one for each index.
    """
    game, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    whole, last = tl.zeros((N,), tl.float64), tl.zeros((D,), tl.float32)
    for start in range(0, n, N):
        place = start + tl.arange(0, N)
        whole += tl.load(squares + game * n + place, place < n, 0.0).to(tl.float64)
    for start in range(0, d, D):
        place = start + tl.arange(0, D)
        part = tl.load(sums + (game * (2 * budget + 1) + 2 * budget) * d + place, place < d, 0.0)
        last += part * part
    total = tl.sum(last, 0)
    all_squares = tl.sum(whole, 0)
    all_pairs = total.to(tl.float64) - all_squares
    players = tl.load(counts + game)
    count, sigma = players.to(tl.float64), tl.load(scale + game).to(tl.float64)
    if chunk < chunks:
        _rows(sums, bits, squared, tangents, game, chunk, count, all_squares, all_pairs, sigma, n, d, budget, K, D, N)
    else:
        means += game * 16
        tl.store(grand + game, total)
        tl.store(means + 10, all_squares.to(tl.float32))
        tl.store(means + 11, all_pairs.to(tl.float32))
        chances += _row(players, game, ROW) * width
        _closed(chances, means, chunk - chunks, count, all_squares, all_pairs, sigma, n, N)


@triton.jit
def _member(bits, game, start, slot, i, n, words):
    """Membership of players i in the coalitions of these slots, of one word."""
    word = tl.load(bits + (game * words + start // SLOTS) * n + i, i < n, 0)
    return (word[None, :] & (1 << (slot % SLOTS))[:, None]) != 0


@triton.jit
def _meet(c, product, q, total, left):
    """x, r^2 and, as far as this is above 0, 1 / r."""
    x = tl.where(c, -2.0, 2.0) * product + q[None, :]
    other = tl.maximum(tl.where(c, left[:, None], total[:, None]) + x, 0.0)
    return x, other, tl.rsqrt(tl.maximum(other, TINY))


@triton.jit
def marginals(
    bits, products, squares, scale, tangents, means, mask, result, own, align,
    n, budget, MASKED: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """SV and BV of a block of players: the mean of what the control variate misses, and its own index

    own: a copy of BV's products, align: of those of all.
    """
    game = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * N + tl.arange(0, N)
    known = i < n
    slots = 4 * ((budget + 1) // 2)
    words = tl.cdiv(slots, SLOTS)
    width = words * SLOTS
    sigma = tl.load(scale + game)
    products += game * (2 * budget + 1) * n
    q = tl.load(squares + game * n + i, known, 0.0)
    along = tl.load(products + 2 * budget * n + i, known, 0.0)
    tl.store(align + game * n + i, along, known)
    rest, fair = tl.zeros((N,), tl.float32), tl.zeros((N,), tl.float32)
    for start in range(0, slots, K):
        slot = start + tl.arange(0, K)
        real, banzhaf, k = _coalitions(slot, budget)
        spot = tangents + game * NUMBERS * width + slot
        total, left = tl.load(spot + TOTAL * width), tl.load(spot + LEFT * width)
        base, base_in = tl.load(spot + BASE * width), tl.load(spot + (BASE + 1) * width)
        slope, slope_in = tl.load(spot + SLOPE * width), tl.load(spot + (SLOPE + 1) * width)
        c = _member(bits, game, start, slot, i, n, words)
        there = real[:, None] & known[None, :]
        product = tl.load(products + k[:, None] * n + i[None, :], there, 0.0)
        x, other, inverse = _meet(c, product, q, total, left)
        step = x / tl.maximum(tl.sqrt(total)[:, None] + other * inverse, 1e-30)
        missed = tl.where(c, -sigma, sigma) * step + tl.where(c, slope_in[:, None], slope[:, None]) * x
        missed -= tl.where(c, base_in[:, None], base[:, None])
        rest += tl.sum(missed * (real & ~banzhaf).to(tl.float32)[:, None], 0)
        fair += tl.sum(missed * (real & banzhaf).to(tl.float32)[:, None], 0)
        copied = (game * budget + k[:, None] - budget) * n + i[None, :]
        tl.store(own + copied, product, there & banzhaf[:, None])
    means += game * 16
    across = along - q
    shown = known.to(tl.float32)
    if MASKED:
        shown = tl.load(mask + game * n + i, known, 0).to(tl.float32)
    closed = tl.load(means) + tl.load(means + 1) * q + tl.load(means + 2) * across
    tl.store(result + game * 2 * n + i, (rest / budget + closed) * shown, known)
    closed = tl.load(means + 5) + tl.load(means + 6) * q + tl.load(means + 7) * across
    tl.store(result + (game * 2 + 1) * n + i, (fair / budget + closed) * shown, known)
