"""Mean interactions of all pairs of a norm game over coalitions, in blocks that stay in a CPU's caches.

    Delta_ij |S_T| = c_i c_j (|S_ij| - |S_i| - |S_j| + |S|),   T = C - ij

S: the sum over C; S_i: the same after i has come, or has gone if it was a member; c_i: 1 for members, -1 for others.
Only |S_ij| depends on two players. Everything else is computed once for each.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

ROWS = 16  # players i of a block; players j are those from the first of them on
NUMBERS = 2**19  # in an array of a block, about
SMOOTH = 0.75  # the least part of |S| that must be left where one player comes or goes, for `_turned_block`
ROUNDING = 16  # times the last digit of the numbers that a squared norm is made of: less counts as 0 in gradients


class MeanPairs(torch.autograd.Function):
    """mean over k of Delta_ij |S_T|, (B, n, n); entries on the diagonal mean nothing

    total: |S_k|^2, (B, K, 1); change: |S_i|^2 - |S|^2, (B, K, n); gram: v_i . v_j, (B, n, n); inside: membership as
    numbers, (B, K, n). Where gradients are asked for it keeps these alone.
    """

    @staticmethod
    def forward(ctx: Any, total: Tensor, change: Tensor, gram: Tensor, inside: Tensor) -> Tensor:
        """Differences as quotients, so that nothing cancels."""
        ctx.save_for_backward(total, change, gram, inside)
        size = inside.sum(-1)
        sign, square = 2 * inside - 1, total + change
        norm, whole = square.clamp_min(0).sqrt_(), total.sqrt()
        step = change / _positive(norm + whole)
        ctx.smooth = smooth = (norm >= SMOOTH * whole).all(-1).logical_and_(size > 2).all(-1)  # (B,)
        gain, lost = -sign * change, -inside * change  # what C - i gains with i, and C loses with it
        out = torch.empty_like(gram)
        _fill(out, gram, smooth, _turned_block, (sign, square, change, step, norm))
        _fill(out, gram, ~smooth, _block, (inside, gain, lost, total[..., 0], size))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """With r = 1 / |S|, 0 where the sum is: of v_i . v_j, r_ij; of |S_i|^2 - |S|^2, c_i c_j (r_ij - r_i) / 2; of
        |S|^2, c_i c_j (r_ij - r_i - r_j + r) / 2.
        """
        total, change, gram, inside = ctx.saved_tensors
        floor = ROUNDING * torch.finfo(total.dtype).eps * (total + change.abs().amax(-1, keepdim=True))  # (B, K, 1)
        slope = gradients[0].clone()
        slope.diagonal(dim1=1, dim2=2).zero_()
        pair = slope + slope.mT  # of the pair {i, j}
        draws, sign = inside.shape[1], 2 * inside - 1
        square = total + change
        one = _inverse_root(square.masked_fill(square <= floor, 0.0))
        none = _inverse_root(total.masked_fill(total <= floor, 0.0))
        inverse, weighted = torch.empty_like(gram), torch.empty_like(change)
        n = gram.shape[1]
        games = max(1, NUMBERS // (draws * min(ROWS, n) * n))
        for first in range(0, len(gram), games):
            part = slice(first, first + games)
            signs, rough = sign[part], not bool(ctx.smooth[part].all())
            for start in range(0, n, ROWS):
                rows = slice(start, start + ROWS)
                both = _turned_squares(square[part], change[part], signs, gram[part, rows], rows, slice(n))
                if rough:
                    both.masked_fill_(both <= floor[part, ..., None], 0.0)
                both = _inverse_root(both)
                inverse[part, rows] = both.mean(1)
                weighted[part, :, rows] = torch.matmul(both.mul_(pair[part, None, rows]), signs[..., None]).squeeze(-1)
        alone = torch.bmm(sign, pair)  # sum over j of c_j and the gradient of the pair
        to_change = sign * (weighted - one * alone) / (2 * draws)
        to_total = (sign * (weighted - 2 * one * alone + none * alone)).sum(-1, keepdim=True) / (4 * draws)
        return to_total, to_change, slope * inverse, None


def _fill(out: Tensor, gram: Tensor, which: Tensor, block: Callable[..., Tensor], given: Sequence[Tensor]) -> None:
    """Write the pairs of some games to `out`, a block at a time."""
    games, (draws, n) = which.nonzero().squeeze(1), given[0].shape[1:]
    for start in range(0, n if len(games) else 0, ROWS):
        rows, columns = slice(start, min(start + ROWS, n)), slice(start, n)
        for part in games.split(max(1, NUMBERS // (draws * (rows.stop - start) * (n - start)))):
            found = block(*(each[part] for each in given), gram[part, rows, columns], rows, columns)
            out[part, rows, columns] = found
            out[part, columns, rows] = found.mT


def _turned_block(
    sign: Tensor, square: Tensor, change: Tensor, step: Tensor, norm: Tensor, gram: Tensor, rows: slice, columns: slice
) -> Tensor:
    """2 (v_i . v_j - c_i d_i c_j d_j) / (|S_ij| + |S_i| + |S_j| - |S|),   d_i = |S_i| - |S|

    sign: c; square: |S_i|^2; change: |S_i|^2 - |S|^2; step: d; norm: |S_i|, (b, K, n) each. Where |S_i| + |S_j| - |S|
    is not well above 0 this cancels; see SMOOTH.
    """
    turned = _turned_squares(square, change, sign, gram, rows, columns)
    turned.clamp_min_(torch.finfo(turned.dtype).tiny).sqrt_()
    turned.add_(step[:, :, rows, None]).add_(norm[:, :, None, columns])
    signed = sign * step
    top = torch.addcmul(gram[:, None], signed[:, :, rows, None], signed[:, :, None, columns], value=-1)
    return top.div_(turned).mean(1).mul_(2)


def _turned_squares(square: Tensor, change: Tensor, sign: Tensor, gram: Tensor, rows: slice, columns: slice) -> Tensor:
    """|S_ij|^2 = |S_i|^2 + |S_j|^2 - |S|^2 + 2 c_i c_j v_i . v_j: (b, K, rows, columns)"""
    found = square[:, :, rows, None] + change[:, :, None, columns]
    return found.addcmul_(2 * gram[:, None] * sign[:, :, rows, None], sign[:, :, None, columns])


def _block(
    inside: Tensor, gain: Tensor, lost: Tensor, total: Tensor, size: Tensor, gram: Tensor, rows: slice, columns: slice
) -> Tensor:
    """The same for any coalitions, (b, rows, columns), as `NormGame.interactions_of` writes it."""
    ci, cj = inside[:, :, rows, None], inside[:, :, None, columns]
    twice = 2 * gram[:, None]
    square = (total[:, :, None, None] - lost[:, :, rows, None]) - lost[:, :, None, columns]
    square.add_((ci * cj).mul_(twice)).clamp_min_(0)
    if bool((size <= 2).any()):  # T may be empty
        square.mul_(size[:, :, None, None] - ci - cj > 0)
    gain_row = torch.addcmul(gain[:, :, rows, None], cj, twice, value=-1)
    gain_column = torch.addcmul(gain[:, :, None, columns], ci, twice, value=-1)
    row = (square + gain_row).clamp_min_(0)
    both = (row + gain_column).add_(twice).clamp_min_(0).sqrt_()
    row.sqrt_()
    column = (square + gain_column).clamp_min_(0).sqrt_()
    none = square.sqrt_()
    turn = gain_column + twice
    turn.div_(_positive(both + row)).add_(gain_column.div_(_positive(column + none)))
    turn.mul_(gain_row).div_(_positive(row.add_(none)))
    return torch.sub(twice, turn, out=turn).div_(_positive(both.add_(column))).mean(1)


def _positive(x: Tensor) -> Tensor:
    """x, infinite where it is 0: a quotient by it is 0 there."""
    return torch.threshold_(x, 0.0, math.inf)


def _inverse_root(x: Tensor) -> Tensor:
    """1 / sqrt(x), 0 where x is not positive; x is lost."""
    return torch.threshold_(x, torch.finfo(x.dtype).tiny, math.inf).rsqrt_()
