"""Interactions of all pairs of a norm game, one block of pairs at a time, streamed over the coalitions.

With S_k the sum over coalition k, P_ki = S_k . v_i, U_k = |S_k|^2, q_i = |v_i|^2, g_ij = v_i . v_j and T = C_k - ij,

    u = |S_T|^2,   a = |S_T + v_i|^2 - u,   b = |S_T + v_j|^2 - u,
    Delta_ij = sqrt(u + a + b + 2 g) - sqrt(u + a) - sqrt(u + b) + sqrt(u),

with every difference of roots written as a quotient, as in `spinformer.games.norm`.
"""

import triton
import triton.language as tl

from spinformer.kernels.device.players import _inverse

LEAST = tl.constexpr(1.2e-38)


@triton.jit
def _inverse_root(x):
    """1 / sqrt(x), 0 where x is not positive."""
    return tl.where(x > 0, tl.rsqrt(tl.maximum(x, LEAST)), 0.0)


@triton.jit
def _tile(row, column, I: tl.constexpr):
    """Players i and j of a block of pairs."""
    return row * I + tl.arange(0, I), column * I + tl.arange(0, I)


@triton.jit
def _places(game, i, j, n):
    """Where a block of pairs lies in a matrix, its mirror image, and which of its pairs there are."""
    base = game * n * n
    known = (i < n)[:, None] & (j < n)[None, :]
    return base + i[:, None] * n + j[None, :], base + j[None, :] * n + i[:, None], known


@triton.jit
def _side(products, inside, squares, k, i, n):
    """Of players i and coalition k: membership, what C - i gains with i, what C loses in squared norm with i."""
    known = i < n
    c = tl.load(inside + k * n + i, known, 0).to(tl.float32)
    product = tl.load(products + k * n + i, known, 0.0)
    q = tl.load(squares + i, known, 0.0)
    return c, 2 * product + (1 - 2 * c) * q, c * (2 * product - q)


@triton.jit
def _context(total, size, ci, cj, gain_i, gain_j, lost_i, lost_j, gram):
    """u, a and b of a block of pairs."""
    square = total - lost_i[:, None] - lost_j[None, :] + 2 * ci[:, None] * cj[None, :] * gram
    square = tl.where(size - ci[:, None] - cj[None, :] > 0.5, tl.maximum(square, 0.0), 0.0)
    return square, gain_i[:, None] - 2 * cj[None, :] * gram, gain_j[None, :] - 2 * ci[:, None] * gram


@triton.jit
def _roots(square, a, b, gram):
    """1 / sqrt of u, u + a, u + b and u + a + b + 2 g, and the four roots."""
    one, other, both = square + a, square + b, square + a + b + 2 * gram
    r0, r1, r2, r3 = _inverse_root(square), _inverse_root(one), _inverse_root(other), _inverse_root(both)
    return r0, r1, r2, r3, square * r0, one * r1, other * r2, both * r3


@triton.jit
def _difference(a, b, gram, none, one, other, both):
    """Delta_ij from the four roots."""
    turn = (b + 2 * gram) * _inverse(both + one) + b * _inverse(other + none)
    return (2 * gram - a * turn * _inverse(one + none)) * _inverse(both + other)


@triton.jit
def _derivatives(a, b, gram, r0, r1, r2, r3, none, one, other, both):
    """Of Delta_ij by a and by b, and the part of that by u that is not by b."""
    by_a = -0.5 * (b + 2 * gram) * r3 * r1 * _inverse(both + one)
    by_a = tl.where((r3 > 0) & (r1 > 0), by_a, 0.5 * (r3 - r1))
    by_b = -0.5 * (a + 2 * gram) * r3 * r2 * _inverse(both + other)
    by_b = tl.where((r3 > 0) & (r2 > 0), by_b, 0.5 * (r3 - r2))
    low = 0.5 * a * r1 * r0 * _inverse(one + none)
    return by_a, by_b, tl.where((r1 > 0) & (r0 > 0), low, 0.5 * (r0 - r1))


@triton.jit
def forward(
    gram, products, inside, total, size, squares, level, mean, log_sum, ess,
    n, draws, tiles, GIBBS: tl.constexpr, I: tl.constexpr,
):  # fmt: skip
    """mean_ij = sum over k of w_k Delta_ij(C_k - ij); pairs with i <= j, and their mirror images.

    GIBBS: w = softmax over k of level |S_(C_k - ij)|. Otherwise w = level / K.
    """
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
        most = tl.full((I, I), float("-inf"), tl.float32)
        weight, weight2, sum_ = tl.zeros((I, I), tl.float32), tl.zeros((I, I), tl.float32), tl.zeros((I, I), tl.float32)
        for k in range(draws):
            ci, gain_i, lost_i = _side(products, inside, squares, k, i, n)
            cj, gain_j, lost_j = _side(products, inside, squares, k, j, n)
            whole, members = tl.load(total + game * draws + k), tl.load(size + game * draws + k)
            square, a, b = _context(whole, members, ci, cj, gain_i, gain_j, lost_i, lost_j, g)
            r0, r1, r2, r3, none, one, other, both = _roots(square, a, b, g)
            delta = _difference(a, b, g, none, one, other, both)
            if GIBBS:
                higher = tl.maximum(most, none * beta)
                old, new = tl.exp(most - higher), tl.exp(none * beta - higher)
                weight = weight * old + new
                weight2 = weight2 * old * old + new * new
                sum_ = sum_ * old + new * delta
                most = higher
            else:
                sum_ += delta
        result = sum_ * (beta / draws)
        if GIBBS:
            result = sum_ / weight
            logs, effective = most + tl.log(weight), weight * weight / weight2
            tl.store(log_sum + place, logs, known)
            tl.store(ess + place, effective, known)
            if row < column:
                tl.store(log_sum + mirror, logs, known)
                tl.store(ess + mirror, effective, known)
        result = tl.where(i[:, None] == j[None, :], 0.0, result)
        tl.store(mean + place, result, known)
        if row < column:
            tl.store(mean + mirror, result, known)
