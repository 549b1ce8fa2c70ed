"""Coalitions for Shapley and Banzhaf values, drawn on the device as `spinformer._base.rng` draws them."""

import triton
import triton.language as tl

from spinformer.kernels.device.players import SLOTS, _coalitions


@triton.jit
def _mix(x):
    """Ettinger's hash of 32 bits, as in `spinformer._base.rng`."""
    x = (x ^ (x >> 16)) * 0x21F0AAAD
    x = (x ^ (x >> 15)) * 0x735A2D97
    return x ^ (x >> 15)


@triton.jit
def _lane(code, salt, row, draw):
    start = _mix(code + salt)
    start = _mix(start + row * 0x9E3779B9)
    return _mix(start + draw * 2 + salt)


@triton.jit
def _uniform(first, second, column):
    bits = _mix(_mix(column + first) + second)
    return ((bits >> 8).to(tl.float32) + 0.5) * 5.9604644775390625e-08


@triton.jit
def draw(
    seed, rank, mask, bits, n, budget, span,
    RANKED: tl.constexpr, MASKED: tl.constexpr, SHARED: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Membership in K coalitions of SV from the seed and K of BV from the seed + 1, a bit of each slot of `players`

    Each odd one is the reflection of the one before. bits: (B, words, n). The programs of a game: one for each word and
    for every `span` players.
    """
    game, block, part = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    half, j = (budget + 1) // 2, tl.arange(0, SLOTS // 2)
    lane = part * (SLOTS // 2) + j
    banzhaf = lane >= half
    pair = tl.where(banzhaf, lane - half, lane)
    code = tl.load(seed) + banzhaf.to(tl.int64)
    low, high = (code & 0xFFFFFFFF).to(tl.uint32), (code >> 32).to(tl.uint32)
    row = game.to(tl.uint32)
    if SHARED:
        row = row * 0
    first, second = _lane(low, 0, row, pair.to(tl.uint32)), _lane(high, 1, row, pair.to(tl.uint32))
    bias = tl.where(banzhaf, 0.5, _uniform(first, second, tl.zeros((SLOTS // 2,), tl.uint32)))
    reflected = tl.where(banzhaf, 0.5, 1 - bias)
    # no coin is below -1
    bias, reflected = tl.where(pair < half, bias, -1.0), tl.where(2 * pair + 1 < budget, reflected, -1.0)
    bits += (game * tl.num_programs(2) + part) * n
    for start in range(block * span, tl.minimum(n, block * span + span), N):
        i = start + tl.arange(0, N)
        known = i < n
        place = i.to(tl.uint32)
        if RANKED:
            place = tl.load(rank + game * n + i, known, 0).to(tl.uint32)
        coin = _uniform(first[:, None], second[:, None], place[None, :] + 1)
        even = (coin < bias[:, None]).to(tl.int32) << (2 * j)[:, None]
        odd = (1 - coin < reflected[:, None]).to(tl.int32) << (2 * j + 1)[:, None]
        word = tl.sum(even | odd, 0)
        if MASKED:
            word = tl.where(tl.load(mask + game * n + i, known, 0).to(tl.int32) != 0, word, 0)
        tl.store(bits + i, word, known)


@triton.jit
def members(
    bits, mask, inside, narrow, n, budget, MASKED: tl.constexpr, NARROW: tl.constexpr, N: tl.constexpr
):  # fmt: skip
    """Membership as numbers in SV's coalitions, in BV's and in that of all, (B, 2 K + 1, n)

    NARROW: the same also in the type of `narrow`. The programs of a game: one for every N players and each word.
    """
    game, part = tl.program_id(0).to(tl.int64), tl.program_id(2)
    i, slot = tl.program_id(1) * N + tl.arange(0, N), tl.arange(0, SLOTS)
    known = i < n
    inside += game * (2 * budget + 1) * n
    narrow += game * (2 * budget + 1) * n
    real, _banzhaf, k = _coalitions(part * SLOTS + slot, budget)
    word = tl.load(bits + (game * tl.num_programs(2) + part) * n + i, known, 0)
    member, keep = (word[None, :] >> slot[:, None]) & 1, real[:, None] & known[None, :]
    tl.store(inside + k[:, None] * n + i[None, :], member.to(tl.float32), keep)
    if NARROW:
        tl.store(narrow + k[:, None] * n + i[None, :], member.to(narrow.dtype.element_ty), keep)
    if part == 0:
        there = known
        if MASKED:
            there = tl.load(mask + game * n + i, known, 0).to(tl.int32) != 0
        tl.store(inside + 2 * budget * n + i, there.to(tl.float32), known)
        if NARROW:
            tl.store(narrow + 2 * budget * n + i, there.to(narrow.dtype.element_ty), known)
