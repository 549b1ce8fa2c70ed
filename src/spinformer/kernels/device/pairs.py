"""Interactions of all pairs of a norm game, one block of pairs at a time, streamed over the coalitions.

With S_k the sum over coalition k, P_ki = S_k . v_i, U_k = |S_k|^2, q_i = |v_i|^2, g_ij = v_i . v_j and T = C_k - ij,

    u = |S_T|^2,   a = |S_T + v_i|^2 - u,   b = |S_T + v_j|^2 - u,
    Delta_ij = sqrt(u + a + b + 2 g) - sqrt(u + a) - sqrt(u + b) + sqrt(u),

with every difference of roots written as a quotient, as in `spinformer.games.norm`.
"""

import triton
import triton.language as tl

LEAST = tl.constexpr(1.2e-38)  # a squared norm below this counts as 0
BINARY = tl.constexpr(1.4426950408889634)  # log_2 of e


@triton.jit
def _inverse_root(x):
    """1 / sqrt(x), 0 where x is not positive."""
    return tl.where(x > LEAST, tl.rsqrt(x), 0.0)


@triton.jit
def _inverses(x, y):
    """1 / x and 1 / y of sums of two roots, both 0 where x or y is: one inverse root in place of two divisions."""
    root = tl.rsqrt(x * y)
    shared = tl.where(x * y > 0, root * root, 0.0)
    return y * shared, x * shared


@triton.jit
def _exponential(x):
    return tl.exp2(x * BINARY)


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
def _side(products, inside, k, i, q, n):
    """Of players i and coalition k: membership, and what C - i gains in squared norm with i."""
    known = i < n
    c = tl.load(inside + k * n + i, known, 0).to(tl.float32)
    return c, 2 * tl.load(products + k * n + i, known, 0.0) + (1 - 2 * c) * q


@triton.jit
def _context(total, size, ci, cj, gain_i, gain_j, twice):
    """u, a and b of a block of pairs; twice: 2 g."""
    shared = cj[None, :] * twice
    square = (total - ci * gain_i)[:, None] - (cj * gain_j)[None, :] + ci[:, None] * shared
    square = tl.maximum(square, 0.0)
    if size < 2.5:  # T may be empty
        square = tl.where(size - ci[:, None] - cj[None, :] > 0.5, square, 0.0)
    return square, gain_i[:, None] - shared, gain_j[None, :] - ci[:, None] * twice


@triton.jit
def _roots(square, a, b, twice):
    """1 / sqrt of u, u + a, u + b and u + a + b + 2 g, and the four roots."""
    one, other, both = square + a, square + b, square + a + (b + twice)
    r0, r1, r2, r3 = _inverse_root(square), _inverse_root(one), _inverse_root(other), _inverse_root(both)
    return r0, r1, r2, r3, square * r0, one * r1, other * r2, both * r3


@triton.jit
def _differences(a, b, twice, none, one, other, both):
    """Delta_ij from the four roots, and both - one, both - other and one - none."""
    by_late, by_early = _inverses(both + one, other + none)  # such a sum is 0 only where v_j is
    by_right, by_left = _inverses(both + other, one + none)  # and here v_i
    late, step = (b + twice) * by_late, a * by_left
    return (twice - step * (late + b * by_early)) * by_right, late, (a + twice) * by_right, step


@triton.jit
def forward(gram, products, inside, total, size, squares, level, mean, log_sum, ess, n, draws, tiles, I: tl.constexpr):
    """mean_ij = sum over k of w_k Delta_ij(C_k - ij), w = softmax over k of level |S_(C_k - ij)|

    For pairs with i <= j, and their mirror images.
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
        twice = 2 * tl.load(gram + place, known, 0.0)
        qi, qj = tl.load(squares + i, i < n, 0.0), tl.load(squares + j, j < n, 0.0)
        most = tl.full((I, I), float("-inf"), tl.float32)
        weight, weight2, sum_ = tl.zeros((I, I), tl.float32), tl.zeros((I, I), tl.float32), tl.zeros((I, I), tl.float32)
        for k in range(draws):
            ci, gain_i = _side(products, inside, k, i, qi, n)
            cj, gain_j = _side(products, inside, k, j, qj, n)
            whole, members = tl.load(total + game * draws + k), tl.load(size + game * draws + k)
            square, a, b = _context(whole, members, ci, cj, gain_i, gain_j, twice)
            _r0, _r1, _r2, _r3, none, one, other, both = _roots(square, a, b, twice)
            delta, _late, _right, _step = _differences(a, b, twice, none, one, other, both)
            rise = none * beta - most  # the higher of both weights is 1
            less = _exponential(-tl.abs(rise))
            old, new = tl.where(rise > 0, less, 1.0), tl.where(rise > 0, 1.0, less)
            weight = weight * old + new
            weight2 = weight2 * old * old + new * new
            sum_ = sum_ * old + new * delta
            most = tl.maximum(most, none * beta)
        result = tl.where(i[:, None] == j[None, :], 0.0, sum_ / weight)
        logs, effective = most + tl.log(weight), weight * weight / weight2
        tl.store(mean + place, result, known)
        tl.store(log_sum + place, logs, known)
        tl.store(ess + place, effective, known)
        if row < column:
            tl.store(mean + mirror, result, known)
            tl.store(log_sum + mirror, logs, known)
            tl.store(ess + mirror, effective, known)
