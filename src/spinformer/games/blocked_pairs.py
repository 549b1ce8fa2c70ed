"""Interactions of all pairs of a norm game with the control variate, on a CPU."""

import torch
from torch import Tensor

from spinformer.games.control import SquaredNormControl
from spinformer.games.indices import INDICES
from spinformer.games.mean_pairs import MeanPairs
from spinformer.games.norm import NormGame, Sums


def can_block_pairs(game: NormGame) -> bool:
    """Whether `controlled_pairs` takes it: on a CPU."""
    return game.device.type == "cpu" and not torch.compiler.is_compiling()


def controlled_pairs(game: NormGame, sums: Sums) -> Tensor:
    """mean over k of (Delta_ij v(T_k) - Delta_ij h(T_k)) + BII of h,   T_k = C_k - ij: (B, n, n)

    h: `SquaredNormControl`. What `estimate_values` gives for BII from these coalitions with the activation identity or
    relu, in a fraction of the operations: the mean of v takes a block of pairs at a time (`MeanPairs`), and that of h
    two matrix products. Besides a few arrays of B n^2 and of B K n numbers it keeps 3 of `mean_pairs.NUMBERS`, or of
    K ROWS n where that is more; 8 for games in which single players decide.
    """
    control = SquaredNormControl(game)
    gram = torch.bmm(game.values, game.values.mT)
    squares = game.squares[:, None]
    gain = 2 * sums.products + (1 - 2 * sums.inside) * squares  # what C - i gains with i, in squared norm
    lost = sums.inside * gain  # what C loses with i
    found: Tensor = MeanPairs.apply(sums.square, torch.where(sums.inside > 0, -gain, gain), gram, sums.inside)
    result = found * game.scale[:, None, None] - _mean_of_control(control, sums, gain, lost, gram)
    result = result + control.exact(INDICES["BII"], gram=gram)
    shown = ~torch.eye(game.players, dtype=torch.bool, device=game.device)
    if game.mask is not None:
        shown = shown & game.mask[:, None] & game.mask[:, :, None]
    return result.masked_fill(~shown, 0.0)


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
