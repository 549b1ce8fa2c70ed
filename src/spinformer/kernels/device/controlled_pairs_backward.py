"""Gradients of `controlled_pairs`."""

import triton
import triton.language as tl

from spinformer.kernels.device.controlled_pairs import _choose, _entries
from spinformer.kernels.device.pairs import _context, _derivatives, _difference, _gram, _side
from spinformer.kernels.device.players_backward import _to_levels


@triton.jit
def _by_class(x, ci, cj):
    """Sums of a block over pairs with no, one and both members inside."""
    free = tl.sum(x * (1 - cj)[None, :], 1)
    held = tl.sum(x * cj[None, :], 1)
    return tl.sum((1 - ci) * free, 0), tl.sum(ci * free + (1 - ci) * held, 0), tl.sum(ci * held, 0)


@triton.jit
def backward(
    gradient, values, products, inside, totals, sizes, squares, align, scale, mask, table, closed,
    to_gram, to_products, to_squares, to_align, to_totals, parts, rest,
    n, d, draws, tiles, MASKED: tl.constexpr, I: tl.constexpr, D: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Of one block of players i, as `pairs.backward`; parts: 12 sums for each coalition, rest: 5 sums."""
    game, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    values += game * n * d
    products += game * draws * n
    inside += game * draws * n
    squares += game * n
    table += game * n * 4
    closed += game * 8
    sigma = tl.load(scale + game)
    i, draw = row * I + tl.arange(0, I), tl.arange(0, K)
    mi = (i < n).to(tl.float32)
    if MASKED:
        mi = tl.load(mask + game * n + i, i < n, 0).to(tl.float32)
    sum_products, sum_squares = tl.zeros((K, I), tl.float32), tl.zeros((I,), tl.float32)
    zero = tl.zeros((K,), tl.float32)
    sum_total = zero
    x0, x1, x2, y0, y1, y2, f0, f1, f2, l0, l1, l2 = (
        zero,
        zero,
        zero,
        zero,
        zero,
        zero,
        zero,
        zero,
        zero,
        zero,
        zero,
        zero,
    )
    sum_scale, sum_gram_slope = 0.0, 0.0
    row_slope = tl.zeros((I,), tl.float32)
    by_gram = tl.load(closed + 3)
    for start in range(0, n, I):
        j = start + tl.arange(0, I)
        gram = _gram(values, i, j, n, d, I, I, D)
        known = (i < n)[:, None] & (j < n)[None, :]
        place = game * n * n + i[:, None] * n + j[None, :]
        mirror = game * n * n + j[None, :] * n + i[:, None]
        slope = tl.load(gradient + place, known, 0.0) + tl.load(gradient + mirror, known, 0.0)
        slope = tl.where(i[:, None] == j[None, :], 0.0, slope)
        if MASKED:
            slope = slope * mi[:, None] * tl.load(mask + game * n + j, j < n, 0).to(tl.float32)[None, :]
        row_slope += tl.sum(slope, 1)
        sum_gram_slope += tl.sum(tl.sum(slope * gram, 1), 0) / 2
        part = slope / draws
        sum_gram = slope * by_gram
        for k in range(draws):
            ci, along_i, lost_i, qi = _side(products, inside, squares, k, i, n)
            cj, along_j, lost_j, qj = _side(products, inside, squares, k, j, n)
            whole, members = tl.load(totals + game * draws + k), tl.load(sizes + game * draws + k)
            square, a, b = _context(whole, members, ci, cj, lost_i, lost_j, along_i, along_j, qi, qj, gram)
            delta, none, one, other, both = _difference(square, a, b, gram)
            direct = part * sigma
            by_a, by_b, low, half_none, half_both = _derivatives(a, b, gram, none, one, other, both)
            t = members.to(tl.int32)
            u0, v0, w0, z0 = _entries(table, t, n)
            u1, v1, w1, z1 = _entries(table, t - 1, n)
            u2, v2, w2, z2 = _entries(table, t - 2, n)
            kind = ci[:, None] + cj[None, :]
            first = _choose(kind, w0, w1, w2)
            by_square = tl.where(none > 0, direct * (by_b + low) - part * _choose(kind, v0, v1, v2), 0.0)
            by_a, by_b = direct * by_a - part * first, direct * by_b - part * first
            sum_gram += 2 * direct * half_both - 2 * part * _choose(kind, z0, z1, z2)
            sum_gram += 2 * ci[:, None] * cj[None, :] * by_square - 2 * (cj[None, :] * by_a + ci[:, None] * by_b)
            row_a, row_square = tl.sum(by_a, 1), tl.sum(by_square, 1)
            chosen = draw == k
            sum_products += tl.where(chosen[:, None], (2 * row_a - 2 * ci * row_square)[None, :], 0.0)
            sum_squares += (1 - 2 * ci) * row_a + ci * row_square
            sum_total += tl.where(chosen, tl.sum(row_square, 0) / 2, 0.0)
            sum_scale += tl.sum(tl.sum(part * delta, 1), 0) / 2
            p0, p1, p2 = _by_class(part, ci, cj)
            x0, x1, x2 = x0 + tl.where(chosen, p0, 0.0), x1 + tl.where(chosen, p1, 0.0), x2 + tl.where(chosen, p2, 0.0)
            p0, p1, p2 = _by_class(part * square, ci, cj)
            y0, y1, y2 = y0 + tl.where(chosen, p0, 0.0), y1 + tl.where(chosen, p1, 0.0), y2 + tl.where(chosen, p2, 0.0)
            p0, p1, p2 = _by_class(part * (a + b), ci, cj)
            f0, f1, f2 = f0 + tl.where(chosen, p0, 0.0), f1 + tl.where(chosen, p1, 0.0), f2 + tl.where(chosen, p2, 0.0)
            p0, p1, p2 = _by_class(2 * part * gram, ci, cj)
            l0, l1, l2 = l0 + tl.where(chosen, p0, 0.0), l1 + tl.where(chosen, p1, 0.0), l2 + tl.where(chosen, p2, 0.0)
        tl.store(to_gram + place, sum_gram, known)
    keep = (draw < draws)[:, None] & (i < n)[None, :]
    tl.store(to_products + game * draws * n + draw[:, None] * n + i[None, :], sum_products, keep)
    qi = tl.load(squares + i, i < n, 0.0)
    across = tl.load(align + game * n + i, i < n, 0.0) - qi
    to_across = row_slope * tl.load(closed + 2)
    tl.store(to_squares + game * n + i, sum_squares + row_slope * tl.load(closed + 1) - to_across, i < n)
    tl.store(to_align + game * n + i, to_across, i < n)
    spot = game * tiles + row
    real = draw < draws
    tl.store(to_totals + spot * draws + draw, sum_total, real)
    place = parts + (spot * draws + draw) * 12
    tl.store(place, x0 / 2, real)
    tl.store(place + 1, y0 / 2, real)
    tl.store(place + 2, f0 / 2, real)
    tl.store(place + 3, l0 / 2, real)
    tl.store(place + 4, x1 / 2, real)
    tl.store(place + 5, y1 / 2, real)
    tl.store(place + 6, f1 / 2, real)
    tl.store(place + 7, l1 / 2, real)
    tl.store(place + 8, x2 / 2, real)
    tl.store(place + 9, y2 / 2, real)
    tl.store(place + 10, f2 / 2, real)
    tl.store(place + 11, l2 / 2, real)
    place = rest + spot * 8
    tl.store(place, sum_scale)
    tl.store(place + 1, tl.sum(row_slope, 0) / 2)
    tl.store(place + 2, tl.sum(row_slope * qi, 0))
    tl.store(place + 3, tl.sum(row_slope * across, 0))
    tl.store(place + 4, sum_gram_slope)


@triton.jit
def _second_to_levels(by_step, by_bend, by_first, by_slope, t, count, squares, pairs, scale):
    """From gradients of a'', b'', b'_(t+1) and b_(t+2) to those of G, P and scale."""
    g1, p1, c1 = _to_levels(by_step, by_bend + by_first, by_slope, t + 1, count, squares, pairs, scale)
    g0, p0, c0 = _to_levels(-by_step, -by_bend, by_slope * 0, t, count, squares, pairs, scale)
    return g0 + g1, p0 + p1, c0 + c1


@triton.jit
def tables_backward(
    parts, rest, sizes, scale, counts, chances, closed, out, n, draws, tiles, width, K: tl.constexpr, N: tl.constexpr,
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
    own, by_constant, by_square, by_across, by_gram = 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range(tiles):
        spot = game * tiles + block
        own += tl.load(rest + spot * 8)
        by_constant += tl.load(rest + spot * 8 + 1)
        by_square += tl.load(rest + spot * 8 + 2)
        by_across += tl.load(rest + spot * 8 + 3)
        by_gram += tl.load(rest + spot * 8 + 4)
        for kind in tl.static_range(3):
            place = parts + (spot * draws + k) * 12 + 4 * kind
            x, y = tl.load(place, real, 0.0).to(tl.float64), tl.load(place + 1, real, 0.0).to(tl.float64)
            f, l = tl.load(place + 2, real, 0.0).to(tl.float64), tl.load(place + 3, real, 0.0).to(tl.float64)
            g, p, c = _second_to_levels(-x, -y, -f, -l, size - kind, count, all_squares, all_pairs, sigma)
            to_squares += tl.where(real, g, 0.0)
            to_pairs += tl.where(real, p, 0.0)
            to_scale += tl.where(real, c, 0.0)
    others = tl.maximum(count - 2, 0)
    row = tl.maximum(players - 1, 0).to(tl.int64) * width
    bend_one = by_constant * all_squares - by_square
    bend_two = by_constant * all_pairs - 2 * by_across + 2 * by_gram
    first_one = 2 * by_across - 4 * by_gram
    zero = tl.zeros((N,), tl.float64)
    more_squares, more_pairs, more_scale = zero, zero, zero
    for start in range(0, n, N):
        place = start + i
        t = place.to(tl.float64)
        one = t / tl.maximum(others, 1)
        two = t * (t - 1) / tl.maximum(others * (others - 1), 1)
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
    tl.store(out + game * 4 + 2, (tl.sum(to_scale, 0) + tl.sum(more_scale, 0) + own).to(tl.float32))
