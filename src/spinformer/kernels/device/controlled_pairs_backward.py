"""Gradients of `controlled_pairs`, beyond those of the interactions themselves."""

import triton
import triton.language as tl

from spinformer.kernels.device.controlled_pairs import _by_members, _factors, _numbers, _rows
from spinformer.kernels.device.mean_pairs import _fall
from spinformer.kernels.device.pairs import _places
from spinformer.kernels.device.pairs_backward import _slope
from spinformer.kernels.device.players import _row
from spinformer.kernels.device.players_backward import _to_levels

BLOCKS = tl.constexpr(8)  # of players, whose sums are read at once


@triton.jit
def _store_classes(place, one, single, double, real):
    """Sums over pairs with no, one and both members inside, from those with weights 1, c_i + c_j and c_i c_j."""
    tl.store(place, one - single + double, real)
    tl.store(place + 4, single - 2 * double, real)
    tl.store(place + 8, double, real)


@triton.jit
def gather(
    gradient, gram, inside, mask, tied, doubles, ends, closed, to_gram, with_members, sums,
    n, draws, tiles, MASKED: tl.constexpr, I: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Of one block of players i: what h adds to to_gram, in place; and sums over j of the gradients s_ij of pairs

    sums: of s_ij and of s_ij v_i . v_j, (2, n); with_members: of the same times c_j, (2, K, n).
    """
    game, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    inside += game * draws * n
    tied += game * n
    i, k = row * I + tl.arange(0, I), tl.arange(0, K)
    c = _numbers(inside, i, k, draws, n) * tl.load(doubles + game * draws + k, k < draws, 0.0)[None, :]
    always = tl.load(tied + i, i < n, 0.0) + tl.load(ends + game * 2 + 1)
    by_gram = tl.load(closed + game * 8 + 3)
    row_slope, row_gram = tl.zeros((I,), tl.float32), tl.zeros((I,), tl.float32)
    with_, gram_with = tl.zeros((I, K), tl.float32), tl.zeros((I, K), tl.float32)
    for column in range(tiles):
        j = column * I + tl.arange(0, I)
        place, _mirror, known = _places(game, i, j, n)
        g = tl.load(gram + place, known, 0.0)
        own_gram = tl.load(to_gram + place, known, 0.0)
        slope = _slope(gradient, mask, game, i, j, place, known, n, MASKED)
        cj = _numbers(inside, j, k, draws, n)
        row_slope += tl.sum(slope, 1)
        row_gram += tl.sum(slope * g, 1)
        with_ += _by_members(slope, cj)
        gram_with += _by_members(slope * g, cj)
        factor = always[:, None] + tl.load(tied + j, j < n, 0.0)[None, :]
        factor += _by_members(c, tl.trans(cj))
        tl.store(to_gram + place, own_gram + slope * (by_gram - 2 * factor / draws), known)
    spot = game * 2 * draws * n + k[None, :] * n + i[:, None]
    there = (k < draws)[None, :] & (i < n)[:, None]
    tl.store(with_members + spot, with_, there)
    tl.store(with_members + draws * n + spot, gram_with, there)
    tl.store(sums + game * 2 * n + i, row_slope, i < n)
    tl.store(sums + (game * 2 + 1) * n + i, row_gram, i < n)


@triton.jit
def control_backward(
    products, inside, totals, sizes, squares, align, table, closed,
    change, limits, weighted, scale, with_members, sums,
    to_products, to_squares, to_align, to_totals, parts, rest,
    n, draws, tiles, I: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Of one block of players i: the gradients of all but v_i . v_j, from what `gather` summed over j

    change, limits, weighted: of `mean_pairs`: the gradients of |S_i|^2 and |S|^2 are made of sums over j.
    parts: 12 sums for each coalition, rest: 4.
    """
    game, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    products += game * draws * n
    inside += game * draws * n
    squares += game * n
    change += game * draws * n
    weighted += game * draws * n
    limits += game * draws * 2
    closed += game * 8
    i, k = row * I + tl.arange(0, I), tl.arange(0, K)
    real = k < draws
    _x0, _x1, _x2, y0, y1, y2, f0, f1, f2, _one, _single, _double = _factors(
        table + game * n * 4, sizes + game * draws, k, draws, n
    )
    c, gain, lost = _rows(products, inside, squares, i, k, draws, n)
    with_members += game * 2 * draws * n
    with_ = _numbers(with_members, i, k, draws, n)
    gram_with = _numbers(with_members + draws * n, i, k, draws, n)
    row_slope = tl.load(sums + game * 2 * n + i, i < n, 0.0)
    row_gram = tl.load(sums + (game * 2 + 1) * n + i, i < n, 0.0)
    # sums over j of the gradient of a pair, alone and with c_j, and the same times v_i . v_j
    r, h = (row_slope / draws)[:, None], (row_gram / draws)[:, None]
    rc, hc = with_ / draws, gram_with / draws
    any_ = c * r + rc
    by_gain = f0[None, :] * r + f1[None, :] * any_ + f2[None, :] * c * rc
    by_lost = y0[None, :] * r + y1[None, :] * any_ + y2[None, :] * c * rc
    spot = k[None, :] * n + i[:, None]
    there = real[None, :] & (i < n)[:, None]
    # the interactions' own gradients of |S_i|^2 and |S|^2
    total, floor = tl.load(totals + game * draws + k, real, 0.0), tl.load(limits + 2 * k, real, 0.0)
    rise, level = tl.load(change + spot, there, 0.0), tl.load(scale + game) / draws
    one = total[None, :] + rise
    r_one = tl.where(one > floor[None, :], tl.rsqrt(one), 0.0)
    r_none = tl.where(total > floor, tl.rsqrt(total), 0.0)[None, :]
    alone = 2 * with_ - row_slope[:, None]
    by_one = level * tl.load(weighted + spot, there, 0.0)
    by_total = (2 * c - 1) * (by_one - level * _fall(rise, r_none, r_one) * alone) / 4
    pulled = tl.where(there, 2 * c * by_lost - 2 * by_gain - by_one, 0.0)
    tl.store(to_products + game * draws * n + spot, pulled, there)
    qi = tl.load(squares + i, i < n, 0.0)
    across = tl.load(align + game * n + i, i < n, 0.0) - qi
    to_across = row_slope * tl.load(closed + 2)
    by_square = tl.sum((0.5 - c) * pulled, 1) + row_slope * tl.load(closed + 1) - to_across
    tl.store(to_squares + game * n + i, by_square, i < n)
    tl.store(to_align + game * n + i, to_across, i < n)
    spot = game * tiles + row
    tl.store(to_totals + spot * draws + k, tl.sum(tl.where(there, by_total, 0.0) - by_lost / 2, 0), real)
    place = parts + (spot * draws + k) * 12
    both, crossed = c * rc, tl.sum(c * hc, 0)
    p0, p1, p2 = tl.sum(r + 0 * c, 0) / 2, tl.sum(any_, 0) / 2, tl.sum(both, 0) / 2
    _store_classes(place, p0, p1, p2, real)
    q0 = total * p0 - tl.sum(lost * r, 0) + crossed
    q1 = total * p1 - tl.sum(lost * any_, 0) + 2 * crossed
    q2 = total * p2 - tl.sum(lost * rc, 0) + crossed
    _store_classes(place + 1, q0, q1, q2, real)
    q0 = tl.sum(gain * r - 2 * hc, 0)
    q1 = tl.sum(gain * any_ - 2 * (c * hc + hc), 0)
    q2 = tl.sum(gain * both, 0) - 2 * crossed
    _store_classes(place + 2, q0, q1, q2, real)
    _store_classes(place + 3, tl.sum(h + 0 * c, 0), tl.sum(c * h + hc, 0), crossed, real)
    place = rest + spot * 4
    tl.store(place, tl.sum(row_slope, 0) / 2)
    tl.store(place + 1, tl.sum(row_slope * qi, 0))
    tl.store(place + 2, tl.sum(row_slope * across, 0))
    tl.store(place + 3, tl.sum(row_gram, 0) / 2)


@triton.jit
def _second_to_levels(by_step, by_bend, by_first, by_slope, t, count, squares, pairs, scale):
    """From gradients of a'', b'', b'_(t+1) and b_(t+2) to those of G, P and scale."""
    g1, p1, c1 = _to_levels(by_step, by_bend + by_first, by_slope, t + 1, count, squares, pairs, scale)
    g0, p0, c0 = _to_levels(-by_step, -by_bend, by_slope * 0, t, count, squares, pairs, scale)
    return g0 + g1, p0 + p1, c0 + c1


@triton.jit
def tables_backward(
    parts, rest, sizes, scale, counts, chances, closed, out, n, draws, tiles, width,
    ROW: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Of one game: gradients of G (less that of P), P and scale, from the sums of all blocks."""
    game = tl.program_id(0).to(tl.int64)
    k, i = tl.arange(0, K), tl.arange(0, N)
    real = k < draws
    closed += game * 8
    all_squares, all_pairs = tl.load(closed + 6).to(tl.float64), tl.load(closed + 7).to(tl.float64)
    players = tl.load(counts + game)
    count, sigma = players.to(tl.float64), tl.load(scale + game).to(tl.float64)
    size = tl.load(sizes + game * draws + k, real, 0.0).to(tl.float64)
    to_squares, to_pairs, to_scale = tl.zeros((K,), tl.float64), tl.zeros((K,), tl.float64), tl.zeros((K,), tl.float64)
    by_constant, by_square, by_across, by_gram = 0.0, 0.0, 0.0, 0.0
    for start in range(0, tiles, BLOCKS):
        block = start + tl.arange(0, BLOCKS)
        spot, known = rest + (game * tiles + block) * 4, block < tiles
        by_constant += tl.sum(tl.load(spot, known, 0.0), 0)
        by_square += tl.sum(tl.load(spot + 1, known, 0.0), 0)
        by_across += tl.sum(tl.load(spot + 2, known, 0.0), 0)
        by_gram += tl.sum(tl.load(spot + 3, known, 0.0), 0)
    for kind in range(3):
        x, y = tl.zeros((K,), tl.float64), tl.zeros((K,), tl.float64)
        f, l = tl.zeros((K,), tl.float64), tl.zeros((K,), tl.float64)
        for start in range(0, tiles, BLOCKS):
            block = start + tl.arange(0, BLOCKS)
            place = parts + ((game * tiles + block)[:, None] * draws + k[None, :]) * 12 + 4 * kind
            known = (block < tiles)[:, None] & real[None, :]
            x += tl.sum(tl.load(place, known, 0.0).to(tl.float64), 0)
            y += tl.sum(tl.load(place + 1, known, 0.0).to(tl.float64), 0)
            f += tl.sum(tl.load(place + 2, known, 0.0).to(tl.float64), 0)
            l += tl.sum(tl.load(place + 3, known, 0.0).to(tl.float64), 0)
        by_squares, by_pairs, by_scale = _second_to_levels(
            -x, -y, -f, -l, size - kind, count, all_squares, all_pairs, sigma
        )
        to_squares += tl.where(real, by_squares, 0.0)
        to_pairs += tl.where(real, by_pairs, 0.0)
        to_scale += tl.where(real, by_scale, 0.0)
    others = tl.maximum(count - 2, 0)
    row = _row(players - 1, game, ROW) * width
    bend_one = by_constant * all_squares - by_square
    bend_two = by_constant * all_pairs - 2 * by_across + 2 * by_gram
    first_one = 2 * by_across - 4 * by_gram
    zero = tl.zeros((N,), tl.float64)
    more_squares, more_pairs, more_scale = zero, zero, zero
    for start in range(0, n, N):
        place = start + i
        t = place.to(tl.float64)
        one = t * (1 / tl.maximum(others, 1))
        two = t * (t - 1) * (1 / tl.maximum(others * (others - 1), 1))
        fair = tl.load(chances + row + place, place < n, 0.0)
        bend = fair * (one * bend_one + two * bend_two)
        first = fair * (by_square + one * first_one)
        g, p, c = _second_to_levels(
            fair * by_constant, bend, first, fair * 2 * by_gram, t, count, all_squares, all_pairs, sigma
        )
        more_squares += g
        more_pairs += p
        more_scale += c
    squares = tl.sum(to_squares, 0) + tl.sum(more_squares, 0) + by_constant * tl.load(closed + 4)
    pairs = tl.sum(to_pairs, 0) + tl.sum(more_pairs, 0) + by_constant * tl.load(closed + 5)
    tl.store(out + game * 4, (squares - pairs).to(tl.float32))
    tl.store(out + game * 4 + 1, pairs.to(tl.float32))
    tl.store(out + game * 4 + 2, (tl.sum(to_scale, 0) + tl.sum(more_scale, 0)).to(tl.float32))
