"""Interactions of all pairs of a norm game, one block of pairs at a time, streamed over the coalitions.

With S_k the sum over coalition k, P_ki = S_k . v_i, U_k = |S_k|^2, q_i = |v_i|^2, g_ij = v_i . v_j and T = C_k - ij,

    u = |S_T|^2,   a = |S_T + v_i|^2 - u,   b = |S_T + v_j|^2 - u,
    Delta_ij = sqrt(u + a + b + 2 g) - sqrt(u + a) - sqrt(u + b) + sqrt(u),

with every difference of roots written as a quotient, as in `spinformer.games.norm`.
"""

import triton
import triton.language as tl


@triton.jit
def _root(x):
    return tl.sqrt(tl.maximum(x, 0.0))


@triton.jit
def _over(a, b):
    """a / b, 0 where b is not positive."""
    return tl.where(b > 0, a / tl.where(b > 0, b, 1.0), 0.0)


@triton.jit
def _gram(values, i, j, n, d, I: tl.constexpr, J: tl.constexpr, D: tl.constexpr):
    """v_i . v_j of a block of rows and a block of columns."""
    total = tl.zeros((I, J), tl.float32)
    for start in range(0, d, D):
        column = start + tl.arange(0, D)
        left = tl.load(values + i[:, None] * d + column[None, :], (i < n)[:, None] & (column < d)[None, :], 0.0)
        right = tl.load(values + j[None, :] * d + column[:, None], (j < n)[None, :] & (column < d)[:, None], 0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    return total


@triton.jit
def _side(products, inside, squares, k, i, n):
    """Of players i and coalition k: membership, S_(C - i) . v_i, what C loses in squared norm with i."""
    known = i < n
    c = tl.load(inside + k * n + i, known, 0).to(tl.float32)
    product = tl.load(products + k * n + i, known, 0.0)
    q = tl.load(squares + i, known, 0.0)
    return c, product - c * q, c * (2 * product - q), q


@triton.jit
def _context(total, size, ci, cj, lost_i, lost_j, along_i, along_j, qi, qj, gram):
    """u, a and b of a block of pairs."""
    square = total - lost_i[:, None] - lost_j[None, :] + 2 * ci[:, None] * cj[None, :] * gram
    square = tl.where(size - ci[:, None] - cj[None, :] > 0.5, tl.maximum(square, 0.0), 0.0)
    a = 2 * (along_i[:, None] - cj[None, :] * gram) + qi[:, None]
    b = 2 * (along_j[None, :] - ci[:, None] * gram) + qj[None, :]
    return square, a, b


@triton.jit
def _difference(square, a, b, gram):
    """Delta_ij, and the four roots."""
    none, one, other = _root(square), _root(square + a), _root(square + b)
    both = _root(square + a + b + 2 * gram)
    turn = _over(b + 2 * gram, both + one) + _over(b, other + none)
    delta = _over(2 * gram - _over(a * turn, one + none), both + other)
    return delta, none, one, other, both


@triton.jit
def _derivatives(a, b, gram, none, one, other, both):
    """Of Delta_ij by a and by b; the part of that by u that is not by b; 1 / (2 root) of u and of all, 0 at 0."""
    half_none, half_one, half_other, half_both = _over(0.5, none), _over(0.5, one), _over(0.5, other), _over(0.5, both)
    by_a = -_over(b + 2 * gram, 2 * both * one * (both + one))
    by_a = tl.where((both > 0) & (one > 0), by_a, half_both - half_one)
    by_b = -_over(a + 2 * gram, 2 * both * other * (both + other))
    by_b = tl.where((both > 0) & (other > 0), by_b, half_both - half_other)
    low = tl.where((one > 0) & (none > 0), _over(a, 2 * one * none * (one + none)), half_none - half_one)
    return by_a, by_b, low, half_none, half_both


@triton.jit
def forward(
    values, products, inside, total, size, squares, cold, mean, log_sum, ess,
    n, d, draws, tiles, I: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """mean_ij = sum over k of w_k Delta_ij(C_k - ij), w = softmax over k of cold |S_(C_k - ij)|; pairs with i <= j."""
    game = tl.program_id(0).to(tl.int64)
    row, column = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    if row <= column:
        values += game * n * d
        products += game * draws * n
        inside += game * draws * n
        squares += game * n
        beta = tl.load(cold + game)
        i, j = row * I + tl.arange(0, I), column * I + tl.arange(0, I)
        gram = _gram(values, i, j, n, d, I, I, D)
        most = tl.full((I, I), float("-inf"), tl.float32)
        weight, weight2, sum_ = tl.zeros((I, I), tl.float32), tl.zeros((I, I), tl.float32), tl.zeros((I, I), tl.float32)
        for k in range(draws):
            ci, along_i, lost_i, qi = _side(products, inside, squares, k, i, n)
            cj, along_j, lost_j, qj = _side(products, inside, squares, k, j, n)
            whole, members = tl.load(total + game * draws + k), tl.load(size + game * draws + k)
            square, a, b = _context(whole, members, ci, cj, lost_i, lost_j, along_i, along_j, qi, qj, gram)
            delta, none, one, other, both = _difference(square, a, b, gram)
            level = none * beta
            higher = tl.maximum(most, level)
            old, new = tl.exp(most - higher), tl.exp(level - higher)
            weight = weight * old + new
            weight2 = weight2 * old * old + new * new
            sum_ = sum_ * old + new * delta
            most = higher
        result = tl.where(i[:, None] == j[None, :], 0.0, sum_ / weight)
        logs, effective = most + tl.log(weight), weight * weight / weight2
        known = (i < n)[:, None] & (j < n)[None, :]
        place = game * n * n + i[:, None] * n + j[None, :]
        mirror = game * n * n + j[None, :] * n + i[:, None]
        tl.store(mean + place, result, known)
        tl.store(log_sum + place, logs, known)
        tl.store(ess + place, effective, known)
        if row < column:
            tl.store(mean + mirror, result, known)
            tl.store(log_sum + mirror, logs, known)
            tl.store(ess + mirror, effective, known)


@triton.jit
def backward(
    gradient, values, products, inside, total, size, squares, cold, mean, log_sum,
    to_gram, to_products, to_squares, to_total, to_cold,
    n, d, draws, tiles, I: tl.constexpr, J: tl.constexpr, D: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Of one block of players i: what all pairs (i, j) give to g_ij, P_ki, q_i, and in part to U_k and cold.

    A pair is met twice, as (i, j) and as (j, i). Each time it gives all of its gradient to its first player and half of
    it to what belongs to neither. So no two programs add to one number, and sums have one order.
    """
    game, row = tl.program_id(0).to(tl.int64), tl.program_id(1)
    values += game * n * d
    products += game * draws * n
    inside += game * draws * n
    squares += game * n
    beta = tl.load(cold + game)
    i, draw = row * I + tl.arange(0, I), tl.arange(0, K)
    sum_products, sum_squares = tl.zeros((K, I), tl.float32), tl.zeros((I,), tl.float32)
    sum_total, sum_cold = tl.zeros((K,), tl.float32), 0.0
    for start in range(0, n, J):
        j = start + tl.arange(0, J)
        gram = _gram(values, i, j, n, d, I, J, D)
        known = (i < n)[:, None] & (j < n)[None, :]
        place = game * n * n + i[:, None] * n + j[None, :]
        mirror = game * n * n + j[None, :] * n + i[:, None]
        slope = tl.load(gradient + place, known, 0.0) + tl.load(gradient + mirror, known, 0.0)
        slope = tl.where(i[:, None] == j[None, :], 0.0, slope)
        average, logs = tl.load(mean + place, known, 0.0), tl.load(log_sum + place, known, 0.0)
        sum_gram = tl.zeros((I, J), tl.float32)
        for k in range(draws):
            ci, along_i, lost_i, qi = _side(products, inside, squares, k, i, n)
            cj, along_j, lost_j, qj = _side(products, inside, squares, k, j, n)
            whole, members = tl.load(total + game * draws + k), tl.load(size + game * draws + k)
            square, a, b = _context(whole, members, ci, cj, lost_i, lost_j, along_i, along_j, qi, qj, gram)
            delta, none, one, other, both = _difference(square, a, b, gram)
            direct = slope * tl.where(known, tl.exp(none * beta - logs), 0.0)
            level = direct * (delta - average)  # gradient of the log-weight
            by_a, by_b, low, half_none, half_both = _derivatives(a, b, gram, none, one, other, both)
            by_square = tl.where(none > 0, direct * (by_b + low) + level * beta * half_none, 0.0)
            by_a, by_b = direct * by_a, direct * by_b
            sum_gram += 2 * direct * half_both + 2 * ci[:, None] * cj[None, :] * by_square
            sum_gram -= 2 * (cj[None, :] * by_a + ci[:, None] * by_b)
            row_a, row_square = tl.sum(by_a, 1), tl.sum(by_square, 1)
            sum_products += tl.where((draw == k)[:, None], (2 * row_a - 2 * ci * row_square)[None, :], 0.0)
            sum_squares += (1 - 2 * ci) * row_a + ci * row_square
            sum_total += tl.where(draw == k, tl.sum(row_square, 0) / 2, 0.0)
            sum_cold += tl.sum(tl.sum(level * none, 1), 0) / 2
        tl.store(to_gram + place, sum_gram, known)
    keep = (draw < draws)[:, None] & (i < n)[None, :]
    tl.store(to_products + game * draws * n + draw[:, None] * n + i[None, :], sum_products, keep)
    tl.store(to_squares + game * n + i, sum_squares, i < n)
    part = game * tiles + row
    tl.store(to_total + part * draws + draw, sum_total, draw < draws)
    tl.store(to_cold + part, sum_cold)
