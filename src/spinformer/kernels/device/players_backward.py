"""Gradients of `players`: of players' values, to their products, squares and the game's numbers."""

import triton
import triton.language as tl

from spinformer.kernels.device.players import _around, _inverse, _level, _row, _several, _tangent

FLOOR = tl.constexpr(1e-2)


@triton.jit
def marginals_backward(
    gradient, to_given, inside, products, squares, totals, sizes, scale, tangents, means, mask,
    to_products, to_squares, to_totals, parts, closed_parts,
    n, budget, blocks, MASKED: tl.constexpr, GIVEN: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Of a block of players: gradients of their products and squares, and their part in those of the game's numbers.

    to_given: a gradient that the products of BV's coalitions have from elsewhere. parts, for each coalition k: the sums
    of e, e u, e gain over those outside and inside it, and of e marginal / scale; closed_parts: for each index the sums
    of g, g q and g across.
    """
    game, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i = block * N + tl.arange(0, N)
    known = i < n
    draws = 2 * budget + 1
    sigma = tl.load(scale + game)
    means += game * 16
    inside += game * draws * n
    products += game * draws * n
    to_products += game * draws * n
    totals += game * draws
    sizes += game * draws
    tangents += game * draws * 8
    q = tl.load(squares + game * n + i, known, 0.0)
    across = tl.load(products + 2 * budget * n + i, known, 0.0) - q
    keep = known.to(tl.float32)
    if MASKED:
        keep = tl.load(mask + game * n + i, known, 0).to(tl.float32)
    sum_squares, sum_across = tl.zeros((N,), tl.float32), tl.zeros((N,), tl.float32)
    place = game * blocks + block
    for index in tl.static_range(2):
        g = tl.load(gradient + (game * 2 + index) * n + i, known, 0.0) * keep
        for start in range(0, budget, K):
            draw = start + tl.arange(0, K)
            k, real = index * budget + draw, draw < budget
            c, product, total, size, step, bend, slope = _several(
                inside, products, totals, sizes, tangents, k, real, i, n
            )
            e = tl.where(real, 1.0 / budget, 0.0)[:, None] * g[None, :]
            gain, square = _around(c, product, q, total, size)
            low, high = tl.sqrt(square), tl.sqrt(tl.maximum(square + gain, 0.0))
            half_high, half_low = 0.5 * _inverse(high), 0.5 * _inverse(low)
            both = (low > 0) & (high > 0)
            by_square = tl.where(both, -gain * 0.5 * _inverse(high * low * (high + low)), half_high - half_low)
            to_gain = e * (sigma * half_high - slope)
            to_square = tl.where(low > 0, e * (sigma * by_square - bend), 0.0)
            to_gain -= c * to_square
            sum_squares += tl.sum((1 - 2 * c) * to_gain, 0)
            to_product = 2 * to_gain
            there = real[:, None] & known[None, :]
            if GIVEN:
                if index == 1:
                    to_product += tl.load(to_given + (game * budget + draw[:, None]) * n + i[None, :], there, 0.0)
            tl.store(to_products + k[:, None] * n + i[None, :], to_product, there)
            tl.store(to_totals + place * draws + k, tl.sum(to_square, 1), real)
            outside = tl.where(c < 0.5, e, 0.0)
            within = e - outside
            spot = parts + (place * 2 * budget + k) * 8
            tl.store(spot, tl.sum(outside, 1), real)
            tl.store(spot + 1, tl.sum(outside * square, 1), real)
            tl.store(spot + 2, tl.sum(outside * gain, 1), real)
            tl.store(spot + 3, tl.sum(within, 1), real)
            tl.store(spot + 4, tl.sum(within * square, 1), real)
            tl.store(spot + 5, tl.sum(within * gain, 1), real)
            tl.store(spot + 6, tl.sum(e * gain * _inverse(low + high), 1), real)
        c1, c2 = tl.load(means + 5 * index + 1), tl.load(means + 5 * index + 2)
        c3, c4 = tl.load(means + 5 * index + 3), tl.load(means + 5 * index + 4)
        sum_squares += g * (c3 - c1)
        sum_across += g * (2 * c4 - 2 * c2)
        closed = closed_parts + place * 8 + 3 * index
        tl.store(closed, tl.sum(g, 0))
        tl.store(closed + 1, tl.sum(g * q, 0))
        tl.store(closed + 2, tl.sum(g * across, 0))
    tl.store(to_products + 2 * budget * n + i, sum_across, known)
    tl.store(to_squares + game * n + i, sum_squares - sum_across, known)


@triton.jit
def _to_levels(by_step, by_bend, by_slope, t, count, squares, pairs, scale):
    """From gradients of a', b' and b_(t+1) for |T| = t to those of G, P and scale."""
    upper, one, two, held = _level(t + 1, count, squares, pairs)
    lower, one0, two0, held0 = _level(t, count, squares, pairs)
    inside = (t >= 0) & (t < count)
    up = tl.where(inside, _inverse(tl.sqrt(tl.maximum(upper, 0.0))), 0.0)
    down = tl.where(inside & (t > 0.5), _inverse(tl.sqrt(tl.maximum(lower, 0.0))), 0.0)
    half = scale / 2
    to_upper = half * (by_step - (by_bend + by_slope) * up * up) * up / 2
    to_lower = half * (-by_step + by_bend * down * down) * down / 2
    to_squares = to_upper * tl.where(held, FLOOR * one, one) + to_lower * tl.where(held0, FLOOR * one0, one0)
    to_pairs = to_upper * tl.where(held, 0.0, two) + to_lower * tl.where(held0, 0.0, two0)
    step, bend, slope = _tangent(t, count, squares, pairs, scale)
    return to_squares, to_pairs, (by_step * step + by_bend * bend + by_slope * slope) / scale


@triton.jit
def scalars_backward(
    parts, closed_parts, to_totals, to_given, means, sizes, scale, chances, counts, all_to_totals, out,
    n, budget, blocks, width, ROW: tl.constexpr, GIVEN: tl.constexpr, K: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Of one game: gradients of |S_k|^2, of G (less that of P), and of scale. to_given: as in `marginals_backward`."""
    game = tl.program_id(0).to(tl.int64)
    draws = 2 * budget + 1
    k, i = tl.arange(0, K), tl.arange(0, N)
    real = k < 2 * budget
    zero = tl.zeros((K,), tl.float64)
    o0, o1, o2, w0, w1, w2, own = zero, zero, zero, zero, zero, zero, zero
    square = tl.zeros((K,), tl.float32)
    sg, sq, sa, zg, zq, za = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range(blocks):
        place = game * blocks + block
        spot = parts + (place * 2 * budget + k) * 8
        o0 += tl.load(spot, real, 0.0)
        o1 += tl.load(spot + 1, real, 0.0)
        o2 += tl.load(spot + 2, real, 0.0)
        w0 += tl.load(spot + 3, real, 0.0)
        w1 += tl.load(spot + 4, real, 0.0)
        w2 += tl.load(spot + 5, real, 0.0)
        own += tl.load(spot + 6, real, 0.0)
        square += tl.load(to_totals + place * draws + k, real, 0.0)
        sg += tl.load(closed_parts + place * 8)
        sq += tl.load(closed_parts + place * 8 + 1)
        sa += tl.load(closed_parts + place * 8 + 2)
        zg += tl.load(closed_parts + place * 8 + 3)
        zq += tl.load(closed_parts + place * 8 + 4)
        za += tl.load(closed_parts + place * 8 + 5)
    if GIVEN:
        given = real & (k >= budget)
        square += tl.load(to_given + game * budget + k - budget, given, 0.0)
    means += game * 16
    all_squares, all_pairs = tl.load(means + 10).to(tl.float64), tl.load(means + 11).to(tl.float64)
    count, sigma = tl.load(counts + game).to(tl.float64), tl.load(scale + game).to(tl.float64)
    size = tl.load(sizes + game * draws + k, real, 0.0).to(tl.float64)
    g0, p0, c0 = _to_levels(-o0, -o1, -o2, size, count, all_squares, all_pairs, sigma)
    g1, p1, c1 = _to_levels(-w0, -w1, -w2, size - 1, count, all_squares, all_pairs, sigma)
    to_squares, to_pairs = tl.sum(tl.where(real, g0 + g1, 0.0), 0), tl.sum(tl.where(real, p0 + p1, 0.0), 0)
    to_scale = tl.sum(tl.where(real, c0 + c1 + own, 0.0), 0)
    # the control variate's own index
    others = count - 1
    row = _row(tl.load(counts + game), game, ROW) * width
    sum_squares, sum_pairs, sum_scale = (
        tl.zeros((N,), tl.float64),
        tl.zeros((N,), tl.float64),
        tl.zeros((N,), tl.float64),
    )
    for start in range(0, n, N):
        place = start + i
        t = place.to(tl.float64)
        one = t / tl.maximum(others, 1)
        two = t * (t - 1) / tl.maximum(others * (others - 1), 1)
        even = tl.where(t < count, 1 / tl.maximum(count, 1), 0.0)
        fair = tl.load(chances + row + place, place < n, 0.0)
        by_step = even * sg + fair * zg
        by_bend = one * (even * (sg * all_squares - sq) + fair * (zg * all_squares - zq))
        by_bend += two * (even * (sg * all_pairs - 2 * sa) + fair * (zg * all_pairs - 2 * za))
        by_slope = even * (sq + 2 * one * sa) + fair * (zq + 2 * one * za)
        g2, p2, c2 = _to_levels(by_step, by_bend, by_slope, t, count, all_squares, all_pairs, sigma)
        sum_squares += g2
        sum_pairs += p2
        sum_scale += c2
    to_squares += tl.sum(sum_squares, 0) + sg * tl.load(means + 1) + zg * tl.load(means + 6)
    to_pairs += tl.sum(sum_pairs, 0) + sg * tl.load(means + 2) + zg * tl.load(means + 7)
    to_scale += tl.sum(sum_scale, 0)
    square = tl.where(k == 2 * budget, to_pairs.to(tl.float32), square)
    tl.store(all_to_totals + game * draws + k, square, k < draws)
    tl.store(out + game * 2, (to_squares - to_pairs).to(tl.float32))
    tl.store(out + game * 2 + 1, to_scale.to(tl.float32))
