"""Who takes which random numbers, and players that are the same: so that neither padding nor order changes an estimate.

A player takes the random numbers of its rank. The rank follows from what the player is, and not from its column:

    rank of i = position of  v_i . (sum of all v_j + NUDGE L r)  among all players,   L = sqrt(sum of |v_j|^2),

padding last. r is a fixed vector, which decides between players whose products with the sum are equal but who differ.
Players with the same vector are twins. No rank can tell them apart, and a swap of two twins' ranks swaps their
estimates and leaves all others as they are. So each twin gets the mean over its twins, which a swap leaves as it is.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer.kernels.operator import operator

# Weight of the fixed vector r: far below differences between players, far above rounding in float64.
NUDGE = 1e-9
# Two vectors are the same where they differ by at most so many units of rounding of their largest element: what a
# matrix product may make of two equal rows.
ROUNDING = 128.0


class Ranks(NamedTuple):
    """rank: of each player among its game's, padding last; twins: a number for each player that its twins share.

    Both are (B, n) integers from 0 to n - 1.
    """

    rank: Tensor
    twins: Tensor


def column_ranks(mask: Tensor) -> Tensor:
    """Ranks by column, padding last, (B, n), for players of whom nothing but the column is known."""
    return torch.argsort(~mask, dim=-1, stable=True).argsort(-1)


@torch.no_grad()
def content_ranks(vectors: Tensor, mask: Tensor | None) -> Ranks:
    """Ranks and twins of players that are known by their vectors, (B, n, d); mask: (B, n), false for padding."""
    return Ranks(*ranks_and_twins(vectors.detach(), mask))


@operator("ranks_and_twins")
def ranks_and_twins(vectors: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The same. One node of a graph: torch.compile would take long for sorting float64 numbers."""
    wide = vectors.double()
    number = torch.arange(1, wide.shape[2] + 1, dtype=wide.dtype, device=wide.device)
    fixed = torch.sin(1000 * number.sqrt())  # r
    length = torch.linalg.vector_norm(wide, dim=(1, 2))[:, None]
    direction = torch.addcmul(wide.sum(1), length, fixed, value=NUDGE)  # (B, d)
    key = torch.bmm(wide, direction[..., None]).squeeze(-1)
    if mask is not None:
        key = key.masked_fill(~mask, torch.inf)
    order = key.argsort(-1)
    rank = order.argsort(-1)
    if vectors.device.type == "cpu":
        same = _same_of_near(vectors, key.gather(1, order), order, direction)
    else:
        follow = vectors.gather(1, order[..., None].expand_as(vectors))  # in the order of their ranks
        same = _same(follow[:, :-1], follow[:, 1:])
    if mask is not None:
        same = same & mask.gather(1, order)[:, 1:]
    group = torch.nn.functional.pad((~same).cumsum(-1), (1, 0))
    return rank, group.gather(1, rank)


@ranks_and_twins.register_fake
def _(vectors: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    empty = vectors.new_empty(vectors.shape[:2], dtype=torch.long)
    return empty, torch.empty_like(empty)


def _same(before: Tensor, after: Tensor) -> Tensor:
    """Whether vectors, (..., d), are the same up to rounding."""
    return (after - before).abs().amax(-1) <= ROUNDING * torch.finfo(after.dtype).eps * after.abs().amax(-1)


def _same_of_near(vectors: Tensor, keys: Tensor, order: Tensor, direction: Tensor) -> Tensor:
    """`_same` of players and those who follow them, (B, n - 1), with a look at those alone whose keys are near

    Keys, (B, n), are products with the direction: those of same vectors differ by no more than |v|_max |direction|_1
    times the rounding of both.
    """
    largest = vectors.abs().amax((1, 2)).double() * direction.abs().sum(-1)  # (B,)
    rounding = 2 * ROUNDING * torch.finfo(vectors.dtype).eps + vectors.shape[2] * torch.finfo(torch.float64).eps
    near = ~(keys.diff(dim=1) > (rounding * largest)[:, None])  # also where keys are infinite
    game, place = near.nonzero().unbind(1)
    same = torch.zeros_like(near)
    same[game, place] = _same(vectors[game, order[game, place]], vectors[game, order[game, place + 1]])
    return same


def mean_of_twins(x: Tensor, twins: Tensor | None) -> Tensor:
    """x_i averaged over the twins of i, (..., n); x_i itself where it has none. twins: (B, n), None for no twins.

    Gradients are those of x_i: an estimate of the gradient of twin i's own value, which the mean's would not be.
    """
    if twins is None:
        return x
    with torch.no_grad():
        index = twins.view(len(twins), *[1] * (x.dim() - 2), twins.shape[1]).expand_as(x)
        mean = torch.zeros_like(x).scatter_reduce(-1, index, x, "mean", include_self=False).gather(-1, index)
    return _valued(x, mean)


def mean_of_twin_pairs(x: Tensor, twins: Tensor | None) -> Tensor:
    """x_ij averaged over all pairs of a twin of i and another twin of j, (B, n, n) with a zero diagonal."""
    if twins is None:
        return x
    with torch.no_grad():
        column = twins[:, None].expand_as(x)
        row = twins[:, :, None].expand_as(x)
        total = torch.zeros_like(x).scatter_add(2, column, x)
        total = torch.zeros_like(x).scatter_add(1, row, total).gather(2, column).gather(1, row)
        size = _count(x[:, 0], twins).gather(1, twins)  # (B, n): of i's twins, i among them
        pairs = size[:, :, None] * (size[:, None] - (row == column).to(x.dtype))  # no player makes a pair with itself
        mean = total / pairs.clamp_min(1)
        mean = mean.masked_fill(torch.eye(x.shape[1], dtype=torch.bool, device=x.device), 0.0)
    return _valued(x, mean)


def _count(x: Tensor, index: Tensor) -> Tensor:
    """How many players have each number, at least 1."""
    return torch.zeros_like(x).scatter_add(-1, index, torch.ones_like(x)).clamp_min(1)


def _valued(x: Tensor, value: Tensor) -> Tensor:
    """`value`, with the gradient of x."""
    return value + (x - x.detach()) if x.requires_grad else value
