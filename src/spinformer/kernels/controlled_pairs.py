"""Mean interactions of all pairs of a norm game with the control variate, with nothing of size K n^2 kept."""

from typing import Any

import torch
from torch import Tensor

from spinformer._base.products import mixed_product
from spinformer.kernels.gathered import gathered_of
from spinformer.kernels.operator import operator
from spinformer.kernels.pairs import MAX_DRAWS, TILE, gram_of
from spinformer.kernels.support import block, usable

MAX_PLAYERS = 1024
ROWS, COLUMNS = 16, 128  # players on each side of a block of pairs of the backward pass


def can_control_pairs(values: Tensor, draws: int) -> bool:
    """Whether the operator takes these vectors and so many coalitions."""
    return usable(values) and draws <= MAX_DRAWS and values.shape[1] <= MAX_PLAYERS


def _sides(given: list[Tensor], table: Tensor) -> tuple[Tensor, list[Tensor]]:
    """What pairs need of their players, from products, membership, totals, sizes and squares: others, and the rest."""
    from spinformer.kernels.device import controlled_pairs as device

    products, _, totals, _, squares = given
    (batch, draws, n), tiles = products.shape, -(-products.shape[2] // TILE)
    others, (alone, tied) = torch.empty_like(products), squares.new_empty(2, batch, n).unbind()
    sums = [alone, tied, torch.empty_like(totals), totals.new_empty(batch, 2)]
    device.sides[(batch, tiles)](
        *given, table, others, *sums, n, draws, I=TILE, K=block(draws), num_warps=4
    )  # fmt: skip
    return others, sums


@operator("control_pairs")
def control_pairs(
    values: Tensor,
    narrow: Tensor | None,
    products: Tensor,
    inside: Tensor,
    totals: Tensor,
    squares: Tensor,
    align: Tensor,
    grand: Tensor,
    scale: Tensor,
    mask: Tensor | None,
    counts: Tensor,
    chances: Tensor,
    row: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """mean over k of (Delta_ij v - Delta_ij h)(C_k - ij) + BII of h,   v(C) = scale |S_C|

    values: (B, n, d); narrow: the same in 16 bits, if that is all that there is; products: S_k . v_i, (B, K, n);
    inside: membership as numbers, (B, K, n); totals: |S_k|^2, (B, K); squares: |v_i|^2, (B, n); align: v_i . sum of
    all, (B, n); grand: |sum of all|^2, (B,); scale: (B,); mask: bool, (B, n); counts: players, (B,); chances, row:
    `Chances` of one player less. Returns the means (B, n, n), 0 where i = j and at padding, and what the backward pass
    needs. Its twin: `estimate_values` with estimator "control".
    """
    from spinformer.kernels.device import controlled_pairs as device
    from spinformer.kernels.device import mean_pairs

    (batch, n, _), draws = values.shape, products.shape[1]
    tiles = -(-n // TILE)
    result, mean = values.new_empty(batch, n, n), values.new_empty(batch, n, n)
    table, closed = values.new_empty(batch, n, 4), values.new_empty(batch, 8)
    change, step = products.new_empty(2, batch, draws, n).unbind()
    limits = values.new_empty(batch, draws, 2)
    sizes, gram = inside.sum(-1), gram_of(values, narrow)
    given = [tensor.contiguous() for tensor in (products, inside, totals, sizes, squares, scale, align)]
    device.tables[(batch,)](
        given[4], grand.contiguous(), given[5], counts, chances, table, closed,
        n, chances.shape[1], ROW=row, N=min(128, block(n)),
    )  # fmt: skip
    whole = block(n)
    mean_pairs.sides[(batch, draws)](
        *given[:5], change, step, limits, n, draws, N=whole, num_warps=1 if whole <= 128 else 4
    )
    grid = (batch, tiles * tiles)
    mean_pairs.forward[grid](gram, *given[:5], change, step, limits, mean, n, draws, tiles, I=TILE, num_warps=4)
    others, sums = _sides(given[:5], table)
    device.control[grid](
        gram, given[1], others, *sums, given[4], given[6], squares if mask is None else mask.contiguous(),
        closed, given[5], mean, result, n, draws, tiles,
        MASKED=mask is not None, I=TILE, K=block(draws), num_warps=2,
    )  # fmt: skip
    return result, sizes, table, closed, gram, mean, change, limits


@operator("control_pairs_backward")
def control_pairs_backward(
    gradient: Tensor,
    values: Tensor,
    products: Tensor,
    inside: Tensor,
    totals: Tensor,
    squares: Tensor,
    align: Tensor,
    scale: Tensor,
    mask: Tensor | None,
    counts: Tensor,
    sizes: Tensor,
    table: Tensor,
    closed: Tensor,
    gram: Tensor,
    mean: Tensor,
    change: Tensor,
    limits: Tensor,
    chances: Tensor,
    row: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of values (through v_i . v_j alone), products, totals, squares, align, grand and scale

    In place of that of values, where they are known in 16 bits alone, that of v_i . v_j.
    """
    from spinformer.kernels.device import controlled_pairs_backward as device
    from spinformer.kernels.device import mean_pairs

    (batch, n, _), draws = values.shape, products.shape[1]
    tiles, rows = -(-n // TILE), -(-n // ROWS)
    width = min(COLUMNS, block(n))
    blocks = -(-n // width)
    to_squares, to_align, out = torch.empty_like(squares), torch.empty_like(align), values.new_empty(batch, 4)
    to_gram, to_products = torch.empty_like(gram), products.new_empty(products.shape)
    to_totals, own = values.new_empty(batch, tiles, draws), values.new_empty(batch, rows * blocks)
    parts, rest = values.new_empty(batch, tiles, draws, 12), values.new_empty(batch, tiles, 4)
    weighted = values.new_empty(batch, blocks, draws, n)
    first, scale, align = gradient.contiguous(), scale.contiguous(), align.contiguous()
    products, inside, totals, squares = (x.contiguous() for x in (products, inside, totals, squares))
    masked = {"MASKED": mask is not None}
    there = squares if mask is None else mask.contiguous()
    mean_pairs.backward[(batch * rows, blocks)](
        first, gram, inside, totals, change, limits, scale, mean, there, to_gram, weighted, own,
        n, draws, rows, blocks, **masked, I=ROWS, J=width, num_warps=4,
    )  # fmt: skip
    weighted = weighted.sum(1) if blocks > 1 else weighted
    given = [products, inside, totals, sizes, squares]
    _, (_, *factors) = _sides(given, table)
    with_members, sums = values.new_empty(batch, 2, draws, n), values.new_empty(batch, 2, n)
    device.gather[(batch, tiles)](
        first, gram, inside, there, *factors, closed, to_gram, with_members, sums, n, draws, tiles,
        **masked, I=TILE, K=block(draws), num_warps=2, num_stages=1,
    )  # fmt: skip
    device.control_backward[(batch, tiles)](
        *given, align, table, closed, change, limits, weighted, scale, with_members, sums,
        to_products, to_squares, to_align, to_totals, parts, rest, n, draws, tiles,
        I=TILE, K=block(draws), num_warps=4,
    )  # fmt: skip
    device.tables_backward[(batch,)](
        parts, rest, sizes, scale, counts, chances, closed, out,
        n, draws, tiles, chances.shape[1], ROW=row, K=block(draws), N=min(128, block(n)),
    )  # fmt: skip
    return (
        torch.bmm(to_gram, values) if values.shape[2] else to_gram,
        to_products,
        to_totals.sum(1),
        to_squares + out[:, :1],
        to_align,
        out[:, 1].clone(),
        out[:, 2] + own.sum(1),
    )


@control_pairs.register_fake
def _(values: Tensor, narrow: Any, products: Tensor, *rest: Any) -> Any:
    (batch, n, _), draws = values.shape, products.shape[1]
    whole = (batch, n, n)
    shapes = [whole, (batch, draws), (batch, n, 4), (batch, 8), whole, whole, (batch, draws, n), (batch, draws, 2)]
    return tuple(values.new_empty(shape) for shape in shapes)


@control_pairs_backward.register_fake
def _(
    gradient: Any,
    values: Tensor,
    products: Any,
    inside: Any,
    totals: Any,
    squares: Any,
    align: Any,
    scale: Any,
    *rest: Any,
) -> Any:
    return tuple(x.new_empty(x.shape) for x in (values, products, totals, squares, align, scale, scale))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    values, _, products, inside, totals, squares, align, _, scale, mask, counts, chances, ctx.row = inputs
    kept = (values, products, inside, totals, squares, align, scale, mask, counts, *output[1:], chances)
    ctx.save_for_backward(*kept)
    ctx.gathered = gathered_of(values)
    ctx.mark_non_differentiable(*output[1:])


def _slopes(ctx: Any, gradient: Tensor, *_: Any) -> Any:
    values, products, totals, squares, align, grand, scale = control_pairs_backward(
        gradient, *ctx.saved_tensors, ctx.row
    )
    if ctx.gathered is not None:
        ctx.gathered.add_whole(mixed_product(values, ctx.gathered.vectors))
        values = torch.empty_like(ctx.saved_tensors[0])
    return values, None, products, None, totals, squares, align, grand, scale, None, None, None, None


control_pairs.register_autograd(_slopes, setup_context=_keep)
