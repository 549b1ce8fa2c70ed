"""Interactions of all pairs of a norm game, less those of the control variate, whose own are closed.

With the a_s and b_s of `players`, t = |T|, u = |S_T|^2 and the gains a and b of both players,

    Delta_ij h(T) = a'' + b'' u + b'_(t+1) (a + b) + 2 b_(t+2) v_i . v_j,

a'' = a'_(t+1) - a'_t and b'' = b'_(t+1) - b'_t. BII of h is
constant + by_square (q_i + q_j) + by_across (across_i + across_j) + by_gram v_i . v_j.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.pairs import _context, _difference, _gram, _side
from spinformer.kernels.device.players import _tangent


@triton.jit
def tables(squares, grand, scale, counts, chances, table, closed, n, width, N: tl.constexpr):
    """Of one game: a'', b'', b'_(t+1) and b_(t+2) for every t < n, (n, 4), and eight numbers of BII of h.

    chances: as in `players`, by the number of players.
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
    row = tl.maximum(players - 1, 0).to(tl.int64) * width
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
        one = t / tl.maximum(others, 1)
        two = t * (t - 1) / tl.maximum(others * (others - 1), 1)
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
def _choose(class_, x0, x1, x2):
    return tl.where(class_ < 0.5, x0, tl.where(class_ < 1.5, x1, x2))


@triton.jit
def forward(
    values, products, inside, totals, sizes, squares, align, scale, mask, table, closed, mean,
    n, d, draws, tiles, MASKED: tl.constexpr, I: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """mean over k of (Delta_ij v - Delta_ij h)(C_k - ij) + BII of h; pairs with i <= j, and their mirror images."""
    game = tl.program_id(0).to(tl.int64)
    row, column = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    if row <= column:
        values += game * n * d
        products += game * draws * n
        inside += game * draws * n
        squares += game * n
        table += game * n * 4
        closed += game * 8
        sigma = tl.load(scale + game)
        i, j = row * I + tl.arange(0, I), column * I + tl.arange(0, I)
        gram = _gram(values, i, j, n, d, I, I, D)
        sum_ = tl.zeros((I, I), tl.float32)
        for k in range(draws):
            ci, along_i, lost_i, qi = _side(products, inside, squares, k, i, n)
            cj, along_j, lost_j, qj = _side(products, inside, squares, k, j, n)
            whole, members = tl.load(totals + game * draws + k), tl.load(sizes + game * draws + k)
            square, a, b = _context(whole, members, ci, cj, lost_i, lost_j, along_i, along_j, qi, qj, gram)
            delta, none, one, other, both = _difference(square, a, b, gram)
            t = members.to(tl.int32)
            x0, y0, f0, l0 = _entries(table, t, n)
            x1, y1, f1, l1 = _entries(table, t - 1, n)
            x2, y2, f2, l2 = _entries(table, t - 2, n)
            kind = ci[:, None] + cj[None, :]
            control = _choose(kind, x0, x1, x2) + _choose(kind, y0, y1, y2) * square
            control += _choose(kind, f0, f1, f2) * (a + b) + 2 * _choose(kind, l0, l1, l2) * gram
            sum_ += sigma * delta - control
        by_square, by_across = tl.load(closed + 1), tl.load(closed + 2)
        qi, qj = tl.load(squares + i, i < n, 0.0), tl.load(squares + j, j < n, 0.0)
        single_i = by_square * qi + by_across * (tl.load(align + game * n + i, i < n, 0.0) - qi)
        single_j = by_square * qj + by_across * (tl.load(align + game * n + j, j < n, 0.0) - qj)
        exact = tl.load(closed) + single_i[:, None] + single_j[None, :] + tl.load(closed + 3) * gram
        result = tl.where(i[:, None] == j[None, :], 0.0, sum_ / draws + exact)
        if MASKED:
            mi = tl.load(mask + game * n + i, i < n, 0).to(tl.float32)
            mj = tl.load(mask + game * n + j, j < n, 0).to(tl.float32)
            result = result * mi[:, None] * mj[None, :]
        known = (i < n)[:, None] & (j < n)[None, :]
        tl.store(mean + game * n * n + i[:, None] * n + j[None, :], result, known)
        if row < column:
            tl.store(mean + game * n * n + j[None, :] * n + i[:, None], result, known)
