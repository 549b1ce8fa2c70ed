"""Interactions of all pairs of a norm game, less those of the control variate, whose own are closed.

With the a_s and b_s of `players`, t = |T|, u = |S_T|^2 and the gains a and b of both players,

    Delta_ij h(T) = a'' + b'' u + b'_(t+1) (a + b) + 2 b_(t+2) v_i . v_j,

a'' = a'_(t+1) - a'_t and b'' = b'_(t+1) - b'_t. BII of h is
constant + by_square (q_i + q_j) + by_across (across_i + across_j) + by_gram v_i . v_j.

|T| is |C_k| less 0, 1 or 2: each of the four factors is x_0 + x_1 (c_i + c_j) + x_2 c_i c_j with the memberships c. So
the sum of Delta_ij h over k is made of matrix products over k, and no pair is met k times.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.pairs import _places, _tile
from spinformer.kernels.device.players import _row, _tangent


@triton.jit
def tables(squares, grand, scale, counts, chances, table, closed, n, width, ROW: tl.constexpr, N: tl.constexpr):
    """Of one game: a'', b'', b'_(t+1) and b_(t+2) for every t < n, (n, 4), and eight numbers of BII of h.

    chances: as in `players`, of one player less.
    """
    game = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, N)
    whole = tl.zeros((N,), tl.float64)
    for start in range(0, n, N):
        place = start + i
        whole += tl.load(squares + game * n + place, place < n, 0.0).to(tl.float64)
    all_squares = tl.sum(whole, 0)
    all_pairs = tl.load(grand + game).to(tl.float64) - all_squares
    players = tl.load(counts + game)
    count, sigma = players.to(tl.float64), tl.load(scale + game).to(tl.float64)
    others = tl.maximum(count - 2, 0)
    row = _row(players - 1, game, ROW) * width
    zero = tl.zeros((N,), tl.float64)
    s0, s1, s2, s3, s4, s5 = zero, zero, zero, zero, zero, zero
    for start in range(0, n, N):
        place = start + i
        t = place.to(tl.float64)
        step0, bend0, slope0 = _tangent(t, count, all_squares, all_pairs, sigma)
        step1, bend1, slope1 = _tangent(t + 1, count, all_squares, all_pairs, sigma)
        spot = table + (game * n + place) * 4
        tl.store(spot, (step1 - step0).to(tl.float32), place < n)
        tl.store(spot + 1, (bend1 - bend0).to(tl.float32), place < n)
        tl.store(spot + 2, bend1.to(tl.float32), place < n)
        tl.store(spot + 3, slope1.to(tl.float32), place < n)
        one = t * (1 / tl.maximum(others, 1))
        two = t * (t - 1) * (1 / tl.maximum(others * (others - 1), 1))
        fair = tl.load(chances + row + place, place < n, 0.0)
        s0 += fair * (step1 - step0)
        s1 += fair * (bend1 - bend0) * one
        s2 += fair * (bend1 - bend0) * two
        s3 += fair * slope1
        s4 += fair * bend1
        s5 += fair * bend1 * one
    step, bend_one, bend_two = tl.sum(s0, 0), tl.sum(s1, 0), tl.sum(s2, 0)
    slope, first, first_one = tl.sum(s3, 0), tl.sum(s4, 0), tl.sum(s5, 0)
    closed += game * 8
    tl.store(closed, (step + bend_one * all_squares + bend_two * all_pairs).to(tl.float32))
    tl.store(closed + 1, (first - bend_one).to(tl.float32))
    tl.store(closed + 2, (2 * first_one - 2 * bend_two).to(tl.float32))
    tl.store(closed + 3, (2 * slope - 4 * first_one + 2 * bend_two).to(tl.float32))
    tl.store(closed + 4, bend_one.to(tl.float32))
    tl.store(closed + 5, bend_two.to(tl.float32))
    tl.store(closed + 6, all_squares.to(tl.float32))
    tl.store(closed + 7, all_pairs.to(tl.float32))


@triton.jit
def _entries(table, t, n):
    """The four entries for |T| = t; 0 where there is no such T."""
    inside = (t >= 0) & (t < n)
    spot = table + tl.maximum(t, 0) * 4
    return (
        tl.load(spot, inside, 0.0),
        tl.load(spot + 1, inside, 0.0),
        tl.load(spot + 2, inside, 0.0),
        tl.load(spot + 3, inside, 0.0),
    )


@triton.jit
def _spread(x0, x1, x2):
    """x by the number of members among i and j, as x_0 + x_1 (c_i + c_j) + x_2 c_i c_j."""
    return x0, x1 - x0, x2 - 2 * x1 + x0


@triton.jit
def _factors(table, sizes, k, draws, n):
    """Of all coalitions, the four factors as `_spread` gives them; and those of g_ij in the sum over k,

    2 g_ij sum over k of (one + single (c_i + c_j) + double c_i c_j).
    """
    real = k < draws
    t = tl.where(real, tl.load(sizes + k, real, 0.0).to(tl.int32), -1)
    x0, y0, f0, l0 = _entries(table, t, n)
    x1, y1, f1, l1 = _entries(table, t - 1, n)
    x2, y2, f2, l2 = _entries(table, t - 2, n)
    one, l_single, l_double = _spread(l0, l1, l2)
    single, double = l_single - f1, l_double + y2 - 2 * f2 + 2 * f1
    x0, x1, x2 = _spread(x0, x1, x2)
    y0, y1, y2 = _spread(y0, y1, y2)
    f0, f1, f2 = _spread(f0, f1, f2)
    return x0, x1, x2, y0, y1, y2, f0, f1, f2, one, single, double


@triton.jit
def _rows(products, inside, squares, i, k, draws, n):
    """Of players i, a row for each: membership, gain and loss of every coalition, as `pairs._side`."""
    known = (i < n)[:, None] & (k < draws)[None, :]
    place = k[None, :] * n + i[:, None]
    c = tl.load(inside + place, known, 0).to(tl.float32)
    product = tl.load(products + place, known, 0.0)
    q = tl.load(squares + i, i < n, 0.0)
    gain = tl.where(known, 2 * product + (1 - 2 * c) * q[:, None], 0.0)
    return c, gain, c * (2 * product - q[:, None])


@triton.jit
def _crossed(c, gain, lost, total, x1, x2, y0, y1, y2, f0, f1, f2):
    """What depends on one player: alone, (I,), and times the membership of the other, (I, K)."""
    alone = (x1 + y1 * total)[None, :] * c - (y0 + y1)[None, :] * lost + (f0[None, :] + f1[None, :] * c) * gain
    other = 0.5 * (x2 + y2 * total)[None, :] * c - (y1 + y2)[None, :] * lost + (f1[None, :] + f2[None, :] * c) * gain
    return tl.sum(alone, 1), other


@triton.jit
def sides(
    products, inside, totals, sizes, squares, table, others, alone, tied, doubles, ends,
    n, draws, I: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """All that `control` needs of a block of players i and coalitions k before it meets pairs

    others: what counts by c_j, (K, n); alone: what counts for all j, (n,); tied: sum over k of single c_i, (n,);
    doubles: the factors of c_i c_j g_ij, (K,); ends: the sums over k of x_0 + y_0 |S|^2 and of the factor of g_ij.
    """
    game, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i, k = row * I + tl.arange(0, I), tl.arange(0, K)
    inside += game * draws * n
    total = tl.load(totals + game * draws + k, k < draws, 0.0)
    x0, x1, x2, y0, y1, y2, f0, f1, f2, one, single, double = _factors(
        table + game * n * 4, sizes + game * draws, k, draws, n
    )
    c, gain, lost = _rows(products + game * draws * n, inside, squares + game * n, i, k, draws, n)
    own, other = _crossed(c, gain, lost, total, x1, x2, y0, y1, y2, f0, f1, f2)
    known = (i < n)[:, None] & (k < draws)[None, :]
    tl.store(others + game * draws * n + k[None, :] * n + i[:, None], other, known)
    tl.store(alone + game * n + i, own, i < n)
    tl.store(tied + game * n + i, tl.sum(c * single[None, :], 1), i < n)
    if row == 0:
        tl.store(doubles + game * draws + k, double, k < draws)
        tl.store(ends + game * 2, tl.sum(x0 + y0 * total, 0))
        tl.store(ends + game * 2 + 1, tl.sum(one, 0))


@triton.jit
def _numbers(rows, i, k, draws, n):
    """Of players i a number for each coalition, (I, K)."""
    return tl.load(rows + k[None, :] * n + i[:, None], (i < n)[:, None] & (k < draws)[None, :], 0).to(tl.float32)


@triton.jit
def _by_members(x, members):
    """x times a matrix of 0 and 1, which tf32 has exactly: two products, of x in two parts, make it one of float32."""
    high = (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)
    return tl.dot(x - high, members, tl.dot(high, members, input_precision="tf32"), input_precision="tf32")


@triton.jit
def control(
    gram, inside, others, alone, tied, doubles, ends, squares, align, mask, closed, scale, mean, result,
    n, draws, tiles, MASKED: tl.constexpr, I: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """scale mean_ij + BII of h - mean over k of Delta_ij h(C_k - ij); pairs with i <= j and their mirror images."""
    game = tl.program_id(0).to(tl.int64)
    row, column = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    if row <= column:
        inside += game * draws * n
        others += game * draws * n
        alone += game * n
        tied += game * n
        squares += game * n
        align += game * n
        closed += game * 8
        i, j = _tile(row, column, I)
        k = tl.arange(0, K)
        place, mirror, known = _places(game, i, j, n)
        double = tl.load(doubles + game * draws + k, k < draws, 0.0)
        ci, cj = _numbers(inside, i, k, draws, n), _numbers(inside, j, k, draws, n)
        sum_ = tl.load(alone + i, i < n, 0.0)[:, None] + tl.load(alone + j, j < n, 0.0)[None, :]
        sum_ += tl.load(ends + game * 2)
        sum_ += _by_members(_numbers(others, i, k, draws, n), tl.trans(cj))
        sum_ += tl.trans(_by_members(_numbers(others, j, k, draws, n), tl.trans(ci)))
        by_gram = tl.load(tied + i, i < n, 0.0)[:, None] + tl.load(tied + j, j < n, 0.0)[None, :]
        by_gram += tl.load(ends + game * 2 + 1)
        by_gram += _by_members(ci * double[None, :], tl.trans(cj))
        g = tl.load(gram + place, known, 0.0)
        sum_ += 2 * g * by_gram
        by_square, by_across = tl.load(closed + 1), tl.load(closed + 2)
        qi, qj = tl.load(squares + i, i < n, 0.0), tl.load(squares + j, j < n, 0.0)
        single_i = by_square * qi + by_across * (tl.load(align + i, i < n, 0.0) - qi)
        single_j = by_square * qj + by_across * (tl.load(align + j, j < n, 0.0) - qj)
        exact = tl.load(closed) + single_i[:, None] + single_j[None, :] + tl.load(closed + 3) * g
        found = tl.load(scale + game) * tl.load(mean + place, known, 0.0) + exact - sum_ / draws
        found = tl.where(i[:, None] == j[None, :], 0.0, found)
        if MASKED:
            mi = tl.load(mask + game * n + i, i < n, 0).to(tl.float32)
            mj = tl.load(mask + game * n + j, j < n, 0).to(tl.float32)
            found = found * mi[:, None] * mj[None, :]
        tl.store(result + place, found, known)
        if row < column:
            tl.store(result + mirror, found, known)
