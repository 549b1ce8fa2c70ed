"""Gradients of `players`: of players' values, to their products, squares and the game's numbers."""

import triton
import triton.language as tl

from spinformer.kernels.device import players as forward
from spinformer.kernels.device.players import _between, _coalitions, _inverse, _level, _meet, _row

BEND, FLOOR, LEFT, NUMBERS = forward.BEND, forward.FLOOR, forward.LEFT, forward.NUMBERS
SIZE, SLOPE, SLOTS, TOTAL = forward.SIZE, forward.SLOPE, forward.SLOTS, forward.TOTAL
SUMS = tl.constexpr(5)  # of a coalition over players: of c e, e x, c e x, e marginal / scale, e z (1 - |S_C| / r)


@triton.jit
def _along(x, K: tl.constexpr, N: tl.constexpr):
    """Sums over four columns that stand side by side."""
    return tl.sum(tl.reshape(x, (K, N // 4, 4)), 2)


@triton.jit
def _rows_backward(
    gradient, to_given, bits, products, squares, scale, tangents, mask, to_products, to_squares, parts,
    game, chunk, first, last, n, budget, MASKED: tl.constexpr, GIVEN: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """What `marginals_backward` finds of the coalitions of K slots."""
    slot = chunk * K + tl.arange(0, K)
    real, banzhaf, k = _coalitions(slot, budget)
    words = tl.cdiv(4 * ((budget + 1) // 2), SLOTS)
    width = words * SLOTS
    spot = tangents + game * NUMBERS * width + slot
    total, left = tl.load(spot + TOTAL * width), tl.load(spot + LEFT * width)
    slope, slope_in = tl.load(spot + SLOPE * width)[:, None], tl.load(spot + (SLOPE + 1) * width)[:, None]
    length, sigma = tl.sqrt(total), tl.load(scale + game)
    instead = 0.5 * sigma * _inverse(length)[:, None]
    weight = tl.where(real, 1.0 / budget, 0.0)[:, None]
    zero = tl.zeros((K, N // 4), tl.float32)
    s0, s1, s2, s3, s4 = zero, zero, zero, zero, zero
    for start in range(first, last, N):
        i = start + tl.arange(0, N)
        known = i < n
        there = real[:, None] & known[None, :]
        place = k[:, None] * n + i[None, :]
        product = tl.load(products + place, there, 0.0)
        word = tl.load(bits + (game * words + slot // SLOTS)[:, None] * n + i[None, :], there, 0)
        c = (word & (1 << (slot % SLOTS))[:, None]) != 0
        x, other, inverse = _meet(c, product, tl.load(squares + game * n + i, known, 0.0), total, left)
        e = weight * tl.load(gradient + (game * 2 + banzhaf)[:, None] * n + i[None, :], there, 0.0)
        if MASKED:
            e *= tl.load(mask + game * n + i, known, 0).to(tl.float32)[None, :]
        ex, found = e * x, other > 0
        step = x * (1 / tl.maximum(length[:, None] + other * inverse, 1e-30))
        by_total = e * tl.where(found, step * inverse, tl.where(c, 0.0, 1.0))
        s0 += _along(tl.where(c, e, 0.0), K, N)
        s1 += _along(ex, K, N)
        s2 += _along(tl.where(c, ex, 0.0), K, N)
        s3 += _along(e * tl.where(c, -step, step), K, N)
        s4 += _along(tl.where(c, -by_total, by_total), K, N)
        fall = tl.where(found, 0.5 * sigma * inverse, tl.where(c, instead, 0.0))
        to_x = e * (tl.where(c, slope_in - fall, slope + fall))
        tl.store(to_squares + i, tl.sum(to_x, 0), known)
        to_product = tl.where(c, -2 * to_x, 2 * to_x)
        if GIVEN:
            given = (game * budget + k[:, None] - budget) * n + i[None, :]
            to_product += tl.load(to_given + given, there & banzhaf[:, None], 0.0)
        tl.store(to_products + place, to_product, there)
    parts += slot
    tl.store(parts, tl.sum(s0, 1))
    tl.store(parts + width, tl.sum(s1, 1))
    tl.store(parts + 2 * width, tl.sum(s2, 1))
    tl.store(parts + 3 * width, tl.sum(s3, 1))
    tl.store(parts + 4 * width, tl.sum(s4, 1))


@triton.jit
def _closed_backward(
    gradient, to_align, products, squares, means, mask, to_products, to_squares, closed_parts,
    game, first, last, n, budget, MASKED: tl.constexpr, ALIGNED: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """What `marginals_backward` finds of the control variate's own indices."""
    means += game * 16
    zero = tl.zeros((N,), tl.float32)
    s0, s1, s2, z0, z1, z2 = zero, zero, zero, zero, zero, zero
    for start in range(first, last, N):
        i = start + tl.arange(0, N)
        known = i < n
        q = tl.load(squares + game * n + i, known, 0.0)
        across = tl.load(products + 2 * budget * n + i, known, 0.0) - q
        sv = tl.load(gradient + game * 2 * n + i, known, 0.0)
        bv = tl.load(gradient + (game * 2 + 1) * n + i, known, 0.0)
        if MASKED:
            shown = tl.load(mask + game * n + i, known, 0).to(tl.float32)
            sv, bv = sv * shown, bv * shown
        to_across = sv * tl.load(means + 2) + bv * tl.load(means + 7)
        tl.store(to_squares + i, sv * tl.load(means + 1) + bv * tl.load(means + 6) - to_across, known)
        if ALIGNED:
            to_across += tl.load(to_align + game * n + i, known, 0.0)
        tl.store(to_products + 2 * budget * n + i, to_across, known)
        s0 += sv
        s1 += sv * q
        s2 += sv * across
        z0 += bv
        z1 += bv * q
        z2 += bv * across
    tl.store(closed_parts, tl.sum(s0, 0))
    tl.store(closed_parts + 1, tl.sum(s1, 0))
    tl.store(closed_parts + 2, tl.sum(s2, 0))
    tl.store(closed_parts + 3, tl.sum(z0, 0))
    tl.store(closed_parts + 4, tl.sum(z1, 0))
    tl.store(closed_parts + 5, tl.sum(z2, 0))


@triton.jit
def marginals_backward(
    gradient, to_given, to_align, bits, products, squares, scale, tangents, means, mask,
    to_products, to_squares, parts, closed_parts, n, budget, span, chunks,
    MASKED: tl.constexpr, GIVEN: tl.constexpr, ALIGNED: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Gradients of products and, in parts, of squares and of what the game's numbers are made of

    to_given, to_align: gradients that the products of BV's coalitions and of that of all have from elsewhere.
    to_squares: (B, chunks + 1, n); parts: `SUMS` for each slot; closed_parts: for each index the sums of g, g q and
    g across. The programs of a game: for every `span` players `chunks`, one for every K slots, and one for the indices
    of the control variate.
    """
    game, chunk, block = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    first = block * span
    last = tl.minimum(n, first + span)
    products += game * (2 * budget + 1) * n
    to_products += game * (2 * budget + 1) * n
    to_squares += (game * (chunks + 1) + chunk) * n
    spot = game * tl.num_programs(2) + block
    if chunk < chunks:
        _rows_backward(
            gradient, to_given, bits, products, squares, scale, tangents, mask, to_products, to_squares,
            parts + spot * SUMS * tl.cdiv(4 * ((budget + 1) // 2), SLOTS) * SLOTS,
            game, chunk, first, last, n, budget, MASKED, GIVEN, K, N,
        )  # fmt: skip
    else:
        _closed_backward(
            gradient, to_align, products, squares, means, mask, to_products, to_squares, closed_parts + spot * 8,
            game, first, last, n, budget, MASKED, ALIGNED, N,
        )  # fmt: skip


@triton.jit
def _to_levels(by_step, by_bend, by_slope, t, count, squares, pairs, scale):
    """From gradients of a', b' and b_(t+1) for |T| = t to those of G, P and scale."""
    one, two, held, upper, high, up = _level(t + 1, count, squares, pairs)
    one0, two0, held0, lower, low, down = _level(t, count, squares, pairs)
    step, bend, slope = _between(t, count, upper, high, up, lower, low, down, 1.0)
    there = (t >= 0) & (t < count)
    quarter = scale / 4
    to_upper = tl.where(there, quarter * (by_step - (by_bend + by_slope) * up * up) * up, 0.0)
    to_lower = tl.where(there & (t > 0.5), quarter * (by_bend * down * down - by_step) * down, 0.0)
    to_squares = to_upper * tl.where(held, FLOOR * one, one) + to_lower * tl.where(held0, FLOOR * one0, one0)
    to_pairs = to_upper * tl.where(held, 0.0, two) + to_lower * tl.where(held0, 0.0, two0)
    return to_squares, to_pairs, by_step * step + by_bend * bend + by_slope * slope


@triton.jit
def scalars_backward(
    parts, closed_parts, square_parts, to_given, to_grand, means, tangents, scale, chances, counts,
    to_totals, to_squares, to_scale, n, budget, blocks, chunks, width,
    ROW: tl.constexpr, GIVEN: tl.constexpr, GRAND: tl.constexpr, K: tl.constexpr, C: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Of one game: gradients of |S_k|^2, of all players' squares and of scale

    to_given, to_grand: gradients that |S_k|^2 of BV's coalitions and of that of all have from elsewhere; parts,
    closed_parts, square_parts: what `marginals_backward` gives.
    """
    game = tl.program_id(0).to(tl.int64)
    slot, i = tl.arange(0, K), tl.arange(0, N)
    half = 4 * ((budget + 1) // 2)
    step = tl.cdiv(half, SLOTS) * SLOTS
    real, banzhaf, k = _coalitions(slot, budget)
    zero = tl.zeros((K,), tl.float64)
    within, all_x, within_x, own, falls = zero, zero, zero, zero, zero
    sg, sq, sa, zg, zq, za = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range(blocks):
        place = game * blocks + block
        spot = parts + place * SUMS * step + slot
        within += tl.load(spot, real, 0.0)
        all_x += tl.load(spot + step, real, 0.0)
        within_x += tl.load(spot + 2 * step, real, 0.0)
        own += tl.load(spot + 3 * step, real, 0.0)
        falls += tl.load(spot + 4 * step, real, 0.0)
        sg += tl.load(closed_parts + place * 8)
        sq += tl.load(closed_parts + place * 8 + 1)
        sa += tl.load(closed_parts + place * 8 + 2)
        zg += tl.load(closed_parts + place * 8 + 3)
        zq += tl.load(closed_parts + place * 8 + 4)
        za += tl.load(closed_parts + place * 8 + 5)
    means += game * 16
    all_squares, all_pairs = tl.load(means + 10).to(tl.float64), tl.load(means + 11).to(tl.float64)
    players, sigma = tl.load(counts + game), tl.load(scale + game)
    count = players.to(tl.float64)
    spot = tangents + game * NUMBERS * step + slot
    size, total = tl.load(spot + SIZE * step, real, 0.0).to(tl.float64), tl.load(spot + TOTAL * step, real, 0.0)
    without = tl.where(real, tl.where(banzhaf, zg, sg) * (1.0 / budget), 0.0) - within
    square = -0.5 * sigma * _inverse(tl.sqrt(total)) * falls
    square -= tl.load(spot + BEND * step, real, 0.0) * without + tl.load(spot + (BEND + 1) * step, real, 0.0) * within
    square = tl.where(total > 0, square, 0.0).to(tl.float32)
    if GIVEN:
        square += tl.load(to_given + game * budget + k - budget, real & banzhaf, 0.0)
    tl.store(to_totals + game * (2 * budget + 1) + k, square, real)
    within_squares = tl.where(size > 1.5, total * within + within_x, 0.0)
    sigma = sigma.to(tl.float64)
    g0, p0, c0 = _to_levels(-without, -total * without, within_x - all_x, size, count, all_squares, all_pairs, sigma)
    g1, p1, c1 = _to_levels(-within, -within_squares, within_x, size - 1, count, all_squares, all_pairs, sigma)
    by_squares, by_pairs = tl.sum(tl.where(real, g0 + g1, 0.0), 0), tl.sum(tl.where(real, p0 + p1, 0.0), 0)
    by_scale = tl.sum(tl.where(real, c0 + c1 + own, 0.0), 0)
    # the control variate's own index
    chances += _row(players, game, ROW) * width
    single, double = 1 / tl.maximum(count - 1, 1), 1 / tl.maximum((count - 1) * (count - 2), 1)
    alike = 1 / tl.maximum(count, 1)
    none = tl.zeros((N,), tl.float64)
    sum_squares, sum_pairs, sum_scale = none, none, none
    for start in range(0, n, N):
        place = start + i
        t = place.to(tl.float64)
        one, two = t * single, t * (t - 1) * double
        even = tl.where(t < count, alike, 0.0)
        fair = tl.load(chances + place, place < n, 0.0)
        by_step = even * sg + fair * zg
        by_bend = one * (even * (sg * all_squares - sq) + fair * (zg * all_squares - zq))
        by_bend += two * (even * (sg * all_pairs - 2 * sa) + fair * (zg * all_pairs - 2 * za))
        by_slope = even * (sq + 2 * one * sa) + fair * (zq + 2 * one * za)
        g2, p2, c2 = _to_levels(by_step, by_bend, by_slope, t, count, all_squares, all_pairs, sigma)
        sum_squares += g2
        sum_pairs += p2
        sum_scale += c2
    by_squares += tl.sum(sum_squares, 0) + sg * tl.load(means + 3) + zg * tl.load(means + 8)
    by_pairs += tl.sum(sum_pairs, 0) + sg * tl.load(means + 4) + zg * tl.load(means + 9)
    by_grand = by_pairs.to(tl.float32)
    if GRAND:
        by_grand += tl.load(to_grand + game)
    tl.store(to_totals + game * (2 * budget + 1) + 2 * budget, by_grand)
    tl.store(to_scale + game, (by_scale + tl.sum(sum_scale, 0)).to(tl.float32))
    each = (by_squares - by_pairs).to(tl.float32)
    for start in range(0, n, N):
        place = start + i
        found = tl.zeros((C, N), tl.float32)
        for chunk in range(0, chunks + 1, C):
            row = chunk + tl.arange(0, C)
            keep = (row <= chunks)[:, None] & (place < n)[None, :]
            found += tl.load(square_parts + (game * (chunks + 1) + row[:, None]) * n + place[None, :], keep, 0.0)
        tl.store(to_squares + game * n + place, tl.sum(found, 0) + each, place < n)
