"""Interactions of all pairs of a norm game without gradients, in blocks that stay in a CPU's caches."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spinformer.games.control import SquaredNormControl
from spinformer.games.indices import INDICES
from spinformer.games.norm import NormGame, Sums

ROWS = 16  # players i of a block; players j are those from the first of them on
NUMBERS = 2**19  # in an array of a block, about
SMOOTH = 0.75  # the least part of |S| that must be left where one player comes or goes, for `_turned_block`


def can_block_pairs(game: NormGame, sums: Sums) -> bool:
    """Whether `controlled_pairs` takes these: on a CPU, where no gradients are asked for."""
    asked = torch.is_grad_enabled() and (game.values.requires_grad or sums.products.requires_grad)
    return not asked and not torch.compiler.is_compiling() and game.device.type == "cpu"


@torch.no_grad()
def controlled_pairs(game: NormGame, sums: Sums) -> Tensor:
    """mean over k of (Delta_ij v(T_k) - Delta_ij h(T_k)) + BII of h,   T_k = C_k - ij: (B, n, n)

    h: `SquaredNormControl`. What `estimate_values` gives for BII from these coalitions with the activation identity or
    relu, in a fraction of the operations: each pair is computed once and in place, and the mean of h takes two matrix
    products. Besides a few arrays of B n^2 and of B K n numbers it keeps 3 of NUMBERS, or of K ROWS n where that is
    more; 8 for games in which single players decide (SMOOTH).
    """
    control = SquaredNormControl(game)
    gram = torch.bmm(game.values, game.values.mT)
    squares = game.squares[:, None]
    gain = 2 * sums.products + (1 - 2 * sums.inside) * squares  # what C - i gains with i, in squared norm
    lost = sums.inside * (2 * sums.products - squares)  # what C loses with i
    result = _mean_difference(sums, gain, lost, gram).mul_(game.scale[:, None, None])
    result.sub_(_mean_of_control(control, sums, gain, lost, gram)).add_(control.exact(INDICES["BII"], gram=gram))
    result.diagonal(dim1=1, dim2=2).zero_()
    return result if game.mask is None else result * (game.mask[:, None] & game.mask[:, :, None])


def _mean_difference(sums: Sums, gain: Tensor, lost: Tensor, gram: Tensor) -> Tensor:
    """mean over k of Delta_ij |S_T|, (B, n, n), of unscaled vectors; entries on the diagonal mean nothing."""
    inside, total, _ = sums
    size = inside.sum(-1)
    change = torch.where(inside > 0, -lost, gain)  # of |S|^2, where i comes or goes
    square = total + change
    norm, whole = square.clamp_min(0).sqrt_(), total.sqrt()
    step = change / _positive(norm + whole)
    smooth = (norm >= SMOOTH * whole).all(-1).logical_and_(size > 2).all(-1)  # (B,)
    out, sign = torch.empty_like(gram), 2 * inside - 1
    _fill(out, gram, smooth, _turned_block, (sign, square, change, step, norm))
    _fill(out, gram, ~smooth, _block, (inside, gain, lost, total[..., 0], size))
    return out


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
    """Delta_ij |S_T| = c_i c_j (|S_ij| - |S_i| - |S_j| + |S|)
                   = 2 (v_i . v_j - c_i d_i c_j d_j) / (|S_ij| + |S_i| + |S_j| - |S|),   d_i = |S_i| - |S|

    S_i: the sum over C where i has come, or gone if it was a member; c_i: 1 for members, -1 for others. Only |S_ij| is
    a number of two players. sign: c; square: |S_i|^2; change: |S_i|^2 - |S|^2; step: d; norm: |S_i|, (b, K, n) each.
    Where |S_i| + |S_j| - |S| is not well above 0 this cancels; see SMOOTH.
    """
    turned = square[:, :, rows, None] + change[:, :, None, columns]  # |S_ij|^2
    turned.addcmul_(2 * gram[:, None] * sign[:, :, rows, None], sign[:, :, None, columns])
    turned.clamp_min_(torch.finfo(turned.dtype).tiny).sqrt_()
    turned.add_(step[:, :, rows, None]).add_(norm[:, :, None, columns])
    signed = sign * step
    top = torch.addcmul(gram[:, None], signed[:, :, rows, None], signed[:, :, None, columns], value=-1)
    return top.div_(turned).mean(1).mul_(2)


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


def _mean_of_control(control: SquaredNormControl, sums: Sums, gain: Tensor, lost: Tensor, gram: Tensor) -> Tensor:
    """mean over k of Delta_ij h(T_k), (B, n, n); entries on the diagonal mean nothing

    Each table X of h is taken at |T| = |C| - c_i - c_j, so it is x0 + x1 (c_i + c_j) + x2 c_i c_j, and so is the mean:
    A + V_i + V_j + sum over k of (c_i Y_j + Y_i c_j) + g_ij (D + E_i + E_j + sum over k of w c_i c_j).
    """
    inside, total, _ = sums
    (s0, s1, s2), (b0, b1, b2), (l0, l1, l2), (f0, f1, f2) = _in_members(control, inside)
    always = (s0 + b0 * total).mean(1)[..., None]  # (B, 1, 1)
    within = inside * gain
    single = (s1 + b1 * total) * inside - (b0 + b1) * lost + f0 * gain + f1 * within  # c_i l_i = l_i
    single = single.mean(1)
    crossed = f1 * gain + f2 * within - (b1 + b2) * lost + 0.5 * (s2 + b2 * total) * inside
    draws = inside.shape[1]
    matrix = torch.bmm(inside.mT, crossed) / draws
    along = 2 * (inside * (l1 - f0 - f1)).mean(1)
    weights = 2 * (b0 + 2 * b1 + b2 - 2 * (f1 + f2) + l2) / draws
    factor = torch.bmm(inside.mT, weights * inside) + 2 * l0.mean(1)[..., None]
    factor.add_(along[:, :, None]).add_(along[:, None]).mul_(gram)
    return factor.add_(matrix).add_(matrix.mT).add_(always + single[:, :, None]).add_(single[:, None])


def _in_members(control: SquaredNormControl, inside: Tensor) -> list[tuple[Tensor, ...]]:
    """x0, x1 and x2 of every table of h for pairs, (B, K, 1) each."""
    tables = control.tables_of(2)  # (B, 4, sizes)
    size = inside.sum(-1).long()
    at = [
        tables.gather(2, (size - m).clamp(0, tables.shape[2] - 1)[:, None].expand(-1, tables.shape[1], -1))
        for m in range(3)
    ]
    parts = (at[0], at[1] - at[0], at[2] - 2 * at[1] + at[0])
    return [tuple(part[:, row, :, None].to(inside.dtype) for part in parts) for row in range(tables.shape[1])]
