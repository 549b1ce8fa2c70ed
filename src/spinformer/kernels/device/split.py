"""Products of float32 numbers with numbers of bfloat16, as exact as in float32

A float32 number is the sum of three of bfloat16, which the matrix units multiply exactly with a fourth.
"""

import triton
import triton.language as tl


@triton.jit
def _split_dot(left, right, sum_):
    """sum + left right, left in three parts."""
    first = left.to(tl.bfloat16)
    rest = left - first.to(tl.float32)
    second = rest.to(tl.bfloat16)
    third = (rest - second.to(tl.float32)).to(tl.bfloat16)
    sum_ = tl.dot(first, right, sum_)
    sum_ = tl.dot(second, right, sum_)
    return tl.dot(third, right, sum_)


@triton.jit
def across(left, vectors, out, n, d, draws, N: tl.constexpr, D: tl.constexpr, K: tl.constexpr):
    """S_k . v_i of a block of coalitions and of players. left: S, (B, K, d)."""
    game = tl.program_id(0).to(tl.int64)
    i, k = tl.program_id(1) * N + tl.arange(0, N), tl.program_id(2) * K + tl.arange(0, K)
    known, real = i < n, k < draws
    sum_ = tl.zeros((K, N), tl.float32)
    for start in range(0, d, D):
        column = start + tl.arange(0, D)
        there = column < d
        s = tl.load(left + (game * draws + k[:, None]) * d + column[None, :], real[:, None] & there[None, :], 0.0)
        v = tl.load(vectors + (game * n + i[:, None]) * d + column[None, :], known[:, None] & there[None, :], 0.0)
        sum_ = _split_dot(s, tl.trans(v), sum_)
    tl.store(out + (game * draws + k[:, None]) * n + i[None, :], sum_, real[:, None] & known[None, :])


@triton.jit
def along(left, vectors, out, n, d, draws, N: tl.constexpr, D: tl.constexpr, K: tl.constexpr):
    """sum over i of W_ki v_i of a block of coalitions and of columns. left: W, (B, K, n)."""
    game = tl.program_id(0).to(tl.int64)
    column, k = tl.program_id(1) * D + tl.arange(0, D), tl.program_id(2) * K + tl.arange(0, K)
    there, real = column < d, k < draws
    sum_ = tl.zeros((K, D), tl.float32)
    for start in range(0, n, N):
        i = start + tl.arange(0, N)
        known = i < n
        w = tl.load(left + (game * draws + k[:, None]) * n + i[None, :], real[:, None] & known[None, :], 0.0)
        v = tl.load(vectors + (game * n + i[:, None]) * d + column[None, :], known[:, None] & there[None, :], 0.0)
        sum_ = _split_dot(w, v, sum_)
    tl.store(out + (game * draws + k[:, None]) * d + column[None, :], sum_, real[:, None] & there[None, :])
