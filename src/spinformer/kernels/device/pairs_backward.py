"""Gradients of `pairs`: of v_i . v_j, of P_ki, of U_k and of beta, one block of pairs at a time.

The arithmetic of a pair and a coalition is done once. The gradient of v_i . v_j is summed over the coalitions on chip.
The others are sums over pairs: each block stores its part of them, in a place of its own, and the parts are added
afterwards. So no two programs add to one number, and sums have one order.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.pairs import _context, _differences, _exponential, _places, _roots, _side, _tile


@triton.jit
def _slope(gradient, mask, game, i, j, place, known, n, MASKED: tl.constexpr):
    """The gradient of the pair {i, j}: of both its places in the matrix; 0 where i = j and at padding."""
    opposite, _mirror, there = _places(game, j, i, n)
    turned = tl.load(gradient + opposite, there, 0.0)
    slope = tl.load(gradient + place, known, 0.0) + tl.trans(turned)
    slope = tl.where(i[:, None] == j[None, :], 0.0, slope)
    if MASKED:
        mi = tl.load(mask + game * n + i, i < n, 0).to(tl.float32)
        mj = tl.load(mask + game * n + j, j < n, 0).to(tl.float32)
        slope = slope * mi[:, None] * mj[None, :]
    return slope


@triton.jit
def _pulled(square, a, b, twice, slope, beta, average, logs):
    """Twice the gradients of a, of b and of u; of g where a, b and u stay; and of beta: of pairs and one coalition.

    With the inverse roots r0, ... r3, those of Delta_ij are r3 - r1, r3 - r2 and r3 - r2 + r0 - r1: for instance
    r3 - r1 = -(1 / r3 - 1 / r1) r3 r1, where neither is 0. That of u is 0 where u is. slope: the gradient of the mean;
    average, logs: that mean and the logarithm of the sum of weights.
    """
    r0, r1, r2, r3, none, one, other, both = _roots(square, a, b, twice)
    delta, late, right, step = _differences(a, b, twice, none, one, other, both)
    direct = slope * _exponential(none * beta - logs)
    rest = delta - average
    bend = tl.where(r1 > 0, step * r1, 1.0) + beta * rest
    by_gram = direct * r3
    by_a = tl.where(r1 > 0, -r1 * tl.where(r3 > 0, late * by_gram, direct), by_gram)
    by_b = tl.where(r2 > 0, -r2 * tl.where(r3 > 0, right * by_gram, direct), by_gram)
    by_square = tl.where(r0 > 0, by_b, 0.0) + direct * r0 * bend
    return by_a, by_b, by_square, by_gram, direct * rest * none


@triton.jit
def backward(
    gradient, gram, products, inside, total, size, squares, level, mean, log_sum, mask, to_gram, shares, to_total, own,
    n, draws, tiles, MASKED: tl.constexpr, I: tl.constexpr,
):  # fmt: skip
    """Of a block of pairs with i <= j: the gradient of g_ij and its mirror image, and its part of all other gradients.

    shares: of that of P_ki, (games, K, tiles, n); place t of player i is for the pairs of i with players of block t.
    to_total, (games, K, blocks), and own, (games, blocks): of those of U_k and of beta. A block on the diagonal meets
    every pair twice, as (i, j) and as (j, i): it gives to i alone, and half of what belongs to neither.
    """
    game = (tl.program_id(0) // (tiles * tiles)).to(tl.int64)
    row, column = tl.program_id(0) // tiles % tiles, tl.program_id(0) % tiles
    if row <= column:
        products += game * draws * n
        inside += game * draws * n
        squares += game * n
        total += game * draws
        size += game * draws
        blocks = tiles * (tiles + 1) // 2
        block = row * (2 * tiles - row - 1) // 2 + column
        shares += game * draws * tiles * n
        to_total += game * draws * blocks + block
        beta = tl.load(level + game)
        i, j = _tile(row, column, I)
        place, mirror, known = _places(game, i, j, n)
        twice = 2 * tl.load(gram + place, known, 0.0)
        qi, qj = tl.load(squares + i, i < n, 0.0), tl.load(squares + j, j < n, 0.0)
        slope = _slope(gradient, mask, game, i, j, place, known, n, MASKED)
        average, logs = tl.load(mean + place, known, 0.0), tl.load(log_sum + place, known, float("inf"))
        each = tl.where(row < column, 0.5, 0.25)  # of 2 by_square
        sum_, sum_own = tl.zeros((I, I), tl.float32), tl.zeros((I, I), tl.float32)
        for k in range(draws):
            ci, gain_i = _side(products, inside, k, i, qi, n)
            cj, gain_j = _side(products, inside, k, j, qj, n)
            square, a, b = _context(tl.load(total + k), tl.load(size + k), ci, cj, gain_i, gain_j, twice)
            by_a, by_b, by_square, direct, by_beta = _pulled(square, a, b, twice, slope, beta, average, logs)
            to_i, to_j = by_a - ci[:, None] * by_square, by_b - cj[None, :] * by_square
            sum_ += direct - cj[None, :] * to_i - ci[:, None] * by_b
            sum_own += by_beta
            tl.store(shares + (k * tiles + column) * n + i, tl.sum(to_i, 1), i < n)
            if row < column:
                tl.store(shares + (k * tiles + row) * n + j, tl.sum(to_j, 0), j < n)
            tl.store(to_total + k * blocks, each * tl.sum(by_square))
        tl.store(to_gram + place, sum_, known)
        if row < column:
            tl.store(to_gram + mirror, sum_, known)
        tl.store(own + game * blocks + block, 2 * each * tl.sum(sum_own))
