"""Gradients of `pairs`: of v_i . v_j, a block of pairs at a time; of P_ki and U_k, a block of players at a time.

Each does the arithmetic of a pair again. So no two programs add to one number, sums have one order, and nothing is
summed across threads within the loops.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.pairs import _context, _derivatives, _difference, _places, _roots, _side, _tile


@triton.jit
def _slope(gradient, mask, game, i, j, place, mirror, known, n, MASKED: tl.constexpr):
    """The gradient of the pair {i, j}: of both its places in the matrix; 0 where i = j and at padding."""
    slope = tl.load(gradient + place, known, 0.0) + tl.load(gradient + mirror, known, 0.0)
    slope = tl.where(i[:, None] == j[None, :], 0.0, slope)
    if MASKED:
        mi = tl.load(mask + game * n + i, i < n, 0).to(tl.float32)
        mj = tl.load(mask + game * n + j, j < n, 0).to(tl.float32)
        slope = slope * mi[:, None] * mj[None, :]
    return slope


@triton.jit
def _weighing(mean, log_sum, slope, place, known, GIBBS: tl.constexpr):
    """Of Gibbs weights: their mean and the logarithm of their sum, for a block of pairs; else nothing that is read."""
    average, logs = slope, slope
    if GIBBS:
        average, logs = tl.load(mean + place, known, 0.0), tl.load(log_sum + place, known, float("inf"))
    return average, logs


@triton.jit
def _pulled(square, a, b, g, slope, beta, average, logs, draws, GIBBS: tl.constexpr):
    """Gradients of a, of b and of u; of g where a, b and u stay; and of beta: of pairs and one coalition."""
    r0, r1, r2, r3, none, one, other, both = _roots(square, a, b, g)
    delta = _difference(a, b, g, none, one, other, both)
    by_a, by_b, low = _derivatives(a, b, g, r0, r1, r2, r3, none, one, other, both)
    if GIBBS:
        direct = slope * tl.exp(none * beta - logs)
        level = direct * (delta - average)  # gradient of the log-weight
        by_square = direct * (by_b + low) + 0.5 * level * beta * r0
        own = level * none
    else:
        direct = slope * (beta / draws)
        by_square = direct * (by_b + low)
        own = slope * delta / draws
    return direct * by_a, direct * by_b, tl.where(none > 0, by_square, 0.0), direct * r3, own


@triton.jit
def to_gram(
    gradient, gram, products, inside, total, size, squares, level, mean, log_sum, mask, out,
    n, draws, tiles, GIBBS: tl.constexpr, MASKED: tl.constexpr, I: tl.constexpr,
):  # fmt: skip
    """The gradient of g_ij of a block of pairs with i <= j, and its mirror image."""
    game = tl.program_id(0).to(tl.int64)
    row, column = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    if row <= column:
        products += game * draws * n
        inside += game * draws * n
        squares += game * n
        beta = tl.load(level + game)
        i, j = _tile(row, column, I)
        place, mirror, known = _places(game, i, j, n)
        g = tl.load(gram + place, known, 0.0)
        slope = _slope(gradient, mask, game, i, j, place, mirror, known, n, MASKED)
        average, logs = _weighing(mean, log_sum, slope, place, known, GIBBS)
        sum_ = tl.zeros((I, I), tl.float32)
        for k in range(draws):
            ci, gain_i, lost_i = _side(products, inside, squares, k, i, n)
            cj, gain_j, lost_j = _side(products, inside, squares, k, j, n)
            whole, members = tl.load(total + game * draws + k), tl.load(size + game * draws + k)
            square, a, b = _context(whole, members, ci, cj, gain_i, gain_j, lost_i, lost_j, g)
            by_a, by_b, by_square, direct, own = _pulled(square, a, b, g, slope, beta, average, logs, draws, GIBBS)
            sum_ += direct + 2 * ci[:, None] * cj[None, :] * by_square
            sum_ -= 2 * (cj[None, :] * by_a + ci[:, None] * by_b)
        tl.store(out + place, sum_, known)
        if row < column:
            tl.store(out + mirror, sum_, known)


@triton.jit
def to_rows(
    gradient, gram, products, inside, total, size, squares, level, mean, log_sum, mask, out, parts,
    n, draws, tiles, GIBBS: tl.constexpr, MASKED: tl.constexpr, I: tl.constexpr,
):  # fmt: skip
    """Of one coalition and one block of players i: the gradient of P_ki, and in part those of U_k and of beta.

    A pair is met twice, as (i, j) and as (j, i). Each time it gives all of its gradient to its first player and half of
    it to what belongs to neither. parts: two numbers for each coalition and block. The gradient of q_i is the sum over
    k of (1/2 - c_ki) times that of P_ki.
    """
    game, k, row = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    products += game * draws * n
    inside += game * draws * n
    squares += game * n
    beta = tl.load(level + game)
    i = row * I + tl.arange(0, I)
    ci, gain_i, lost_i = _side(products, inside, squares, k, i, n)
    whole, members = tl.load(total + game * draws + k), tl.load(size + game * draws + k)
    sum_a, sum_square, sum_own = (
        tl.zeros((I, I), tl.float32),
        tl.zeros((I, I), tl.float32),
        tl.zeros((I, I), tl.float32),
    )
    for column in range(tiles):
        j = column * I + tl.arange(0, I)
        place, mirror, known = _places(game, i, j, n)
        g = tl.load(gram + place, known, 0.0)
        slope = _slope(gradient, mask, game, i, j, place, mirror, known, n, MASKED)
        average, logs = _weighing(mean, log_sum, slope, place, known, GIBBS)
        cj, gain_j, lost_j = _side(products, inside, squares, k, j, n)
        square, a, b = _context(whole, members, ci, cj, gain_i, gain_j, lost_i, lost_j, g)
        by_a, by_b, by_square, direct, own = _pulled(square, a, b, g, slope, beta, average, logs, draws, GIBBS)
        sum_a += by_a
        sum_square += by_square
        sum_own += own
    row_a, row_square = tl.sum(sum_a, 1), tl.sum(sum_square, 1)
    tl.store(out + (game * draws + k) * n + i, 2 * row_a - 2 * ci * row_square, i < n)
    spot = parts + ((game * draws + k) * tiles + row) * 2
    tl.store(spot, tl.sum(row_square, 0) / 2)
    tl.store(spot + 1, tl.sum(tl.sum(sum_own, 1), 0) / 2)
