"""Interactions of all pairs of a norm game, averaged over coalitions C with equal weights, a block of pairs at a time.

    Delta_ij |S_T| = s_i s_j (|S_ij| - |S_i| - |S_j| + |S|),   T = C - ij
                   = 2 (g_ij - s_i d_i s_j d_j) / (|S_ij| + |S_i| + |S_j| - |S|),   d_i = |S_i| - |S|
    |S_ij|^2 = |S_i|^2 + |S_j|^2 - |S|^2 + 2 s_i s_j g_ij

S: the sum over C; S_i: the same after i has come, or has gone if it was a member; s_i: 1 for members, -1 for others;
g_ij = v_i . v_j. Only |S_ij| depends on two players: `sides` makes the rest once for each player. The quotient is for
coalitions of which no player is a large part; the others take the formula of `pairs`. As `spinformer.games.mean_pairs`.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.pairs import _context, _differences, _places, _roots, _side, _tile
from spinformer.kernels.device.pairs_backward import _slope
from spinformer.kernels.device.players import _inverse

SMOOTH = tl.constexpr(0.75)  # the least part of |S| that must be left where one player comes or goes, for the quotient
ROUNDING = tl.constexpr(16 * 1.1920929e-07)  # of the numbers that |S_ij|^2 is made of: less counts as 0 in gradients


@triton.jit
def _sign(inside, k, i, n):
    """s of players i and coalition k."""
    return 2 * tl.load(inside + k * n + i, i < n, 0).to(tl.float32) - 1


@triton.jit
def sides(products, inside, totals, sizes, squares, change, step, limits, n, draws, N: tl.constexpr):
    """|S_i|^2 - |S|^2 and d_i of all players, for one coalition

    limits, two numbers: what counts as 0 in |S_ij|^2; and 1 where the quotient may be used.
    """
    game, k = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i = tl.arange(0, N)
    known = i < n
    spot = game * draws + k
    products += game * draws * n
    total = tl.load(totals + spot)
    sign = _sign(inside + game * draws * n, k, i, n)
    rise = tl.load(squares + game * n + i, known, 0.0) - 2 * sign * tl.load(products + k * n + i, known, 0.0)
    whole, norm = tl.sqrt(total), tl.sqrt(tl.maximum(total + rise, 0.0))
    tl.store(change + spot * n + i, rise, known)
    tl.store(step + spot * n + i, rise * _inverse(norm + whole), known)
    tl.store(limits + 2 * spot, (total + tl.max(tl.where(known, tl.abs(rise), 0.0), 0)) * ROUNDING)
    left = tl.min(tl.where(known, norm, float("inf")), 0)
    smooth = (left >= whole * SMOOTH) & (whole > 0) & (tl.load(sizes + spot) > 2.5)
    tl.store(limits + 2 * spot + 1, smooth.to(tl.float32))


@triton.jit
def forward(
    gram, products, inside, totals, sizes, squares, change, step, limits, mean, n, draws, tiles, I: tl.constexpr
):
    """mean_ij = sum over k of Delta_ij |S_(C_k - ij)| / K; pairs with i <= j, and their mirror images."""
    game = tl.program_id(0).to(tl.int64)
    row, column = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    if row <= column:
        products += game * draws * n
        inside += game * draws * n
        change += game * draws * n
        step += game * draws * n
        squares += game * n
        totals += game * draws
        sizes += game * draws
        limits += game * draws * 2
        i, j = _tile(row, column, I)
        place, mirror, known = _places(game, i, j, n)
        g = tl.load(gram + place, known, 0.0)
        sum_ = tl.zeros((I, I), tl.float32)
        for k in range(draws):
            total = tl.load(totals + k)
            if tl.load(limits + 2 * k + 1) > 0.5:
                si, sj = _sign(inside, k, i, n), _sign(inside, k, j, n)
                di, dj = tl.load(step + k * n + i, i < n, 0.0), tl.load(step + k * n + j, j < n, 0.0)
                one, other = total + tl.load(change + k * n + i, i < n, 0.0), tl.load(change + k * n + j, j < n, 0.0)
                both = one[:, None] + (other[None, :] + 2 * g * (si[:, None] * sj[None, :]))
                rest = di[:, None] + (tl.sqrt(total) + dj)[None, :]
                top = g - (si * di)[:, None] * (sj * dj)[None, :]
                sum_ += 2 * top / (tl.sqrt(tl.maximum(both, 0.0)) + rest)
            else:
                qi, qj = tl.load(squares + i, i < n, 0.0), tl.load(squares + j, j < n, 0.0)
                ci, gain_i = _side(products, inside, k, i, qi, n)
                cj, gain_j = _side(products, inside, k, j, qj, n)
                u, a, b = _context(total, tl.load(sizes + k), ci, cj, gain_i, gain_j, 2 * g)
                _r0, _r1, _r2, _r3, r0, r1, r2, r3 = _roots(u, a, b, 2 * g)
                delta, _late, _right, _step = _differences(a, b, 2 * g, r0, r1, r2, r3)
                sum_ += delta
        result = tl.where(i[:, None] == j[None, :], 0.0, sum_ / draws)
        tl.store(mean + place, result, known)
        if row < column:
            tl.store(mean + mirror, result, known)


@triton.jit
def _fall(rise, low, high):
    """1 / sqrt(x + rise) - 1 / sqrt(x) from both, `high` and `low`, without cancellation; one of them may be 0."""
    shared = low * high
    return tl.where(shared > 0, -rise * shared * (shared / tl.where(shared > 0, low + high, 1.0)), high - low)


@triton.jit
def backward(
    gradient, gram, inside, totals, change, limits, scale, mean, mask, to_gram, weighted, own,
    n, draws, rows, parts, MASKED: tl.constexpr, I: tl.constexpr, J: tl.constexpr,
):  # fmt: skip
    """With r = 1 / |S|: the gradient of v_i . v_j, by r_ij; and of each k the sums over j of s_j (r_ij - r_i), weighted

    by the gradients of the pairs: (games, parts, K, n), one part for each block of J players j. own: of the scale.
    """
    game, place = (tl.program_id(0) // rows).to(tl.int64), tl.program_id(0) % rows
    part = tl.program_id(1)
    inside += game * draws * n
    change += game * draws * n
    totals += game * draws
    limits += game * draws * 2
    weighted += (game * parts + part) * draws * n
    i, j = place * I + tl.arange(0, I), part * J + tl.arange(0, J)
    spot, _mirror, known = _places(game, i, j, n)
    twice = 2 * tl.load(gram + spot, known, 0.0)
    slope = _slope(gradient, mask, game, i, j, spot, known, n, MASKED)
    inverse = tl.zeros((I, J), tl.float32)
    for k in range(draws):
        floor = tl.load(limits + 2 * k)
        si, sj = _sign(inside, k, i, n), _sign(inside, k, j, n)
        one = tl.load(totals + k) + tl.load(change + k * n + i, i < n, 0.0)
        rise = tl.load(change + k * n + j, j < n, 0.0)[None, :] + twice * (si[:, None] * sj[None, :])
        both = one[:, None] + rise
        r_one, r = tl.where(one > floor, tl.rsqrt(one), 0.0)[:, None], tl.where(both > floor, tl.rsqrt(both), 0.0)
        inverse += r
        tl.store(weighted + k * n + i, tl.sum(slope * sj[None, :] * _fall(rise, r_one, r), 1), i < n)
    level = tl.load(scale + game) / draws
    tl.store(to_gram + spot, slope * inverse * level, known)
    alike = tl.sum(tl.sum(slope * tl.load(mean + spot, known, 0.0), 1), 0) / 2
    tl.store(own + (game * rows + place) * parts + part, alike)
