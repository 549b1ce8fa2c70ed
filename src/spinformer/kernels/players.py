"""Shapley and Banzhaf values of norm games with their control variate: a few launches, nothing of size K n d kept."""

from typing import Any, TypeGuard

import torch
from torch import Tensor

from spinformer._base.products import long_product, narrow_product, split_product
from spinformer._base.rng import seed_on
from spinformer.kernels.chances import WIDE
from spinformer.kernels.operator import operator
from spinformer.kernels.support import block, rows_of, usable

MAX_BUDGET = 256
PROGRAMS = 264  # two for each processor of a large GPU
LEAST_SPLIT = 256  # columns of vectors in 16 bits from which on a product with float32 numbers is split
BLOCKS = 32  # of players, whose parts in a game's numbers one program adds up; more are added up before


def can_value_players(values: Tensor, budget: int) -> bool:
    """Whether the operator takes these vectors and so many coalitions."""
    return usable(values) and budget <= MAX_BUDGET


def _across(n: int) -> dict[str, int]:
    """Blocks of players, and warps, of the one program of a game that meets them all."""
    return {"N": min(128, block(n)), "num_warps": 4} if n <= WIDE else {"N": 1024, "num_warps": 16}


def _players(batch: int, n: int) -> int:
    """Players of a program: fewer where a launch would have too few programs for a large GPU."""
    return rows_of(n, min(64 if batch * -(-n // 64) >= PROGRAMS else 32, block(n)))


def _draws(budget: int) -> int:
    """Coalitions that a program meets at once."""
    return min(32, block(budget))


def _pays(narrow: Tensor | None) -> TypeGuard[Tensor]:
    """Whether products with the vectors are faster in 16 bits, although the other factor then comes in three parts."""
    return narrow is not None and narrow.dtype == torch.bfloat16 and narrow.shape[2] >= LEAST_SPLIT


@operator("value_players")
def value_players(
    values: Tensor,
    narrow: Tensor | None,
    squares: Tensor,
    scale: Tensor,
    mask: Tensor | None,
    counts: Tensor,
    rank: Tensor | None,
    seed: Tensor,
    chances: Tensor,
    row: int,
    budget: int,
    shared: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """mean over k of (Delta_i v(T_k) - Delta_i h(T_k)) + the index of h, for SV and BV, v(C) = scale |S_C|

    values: (B, n, d), 0 at padding; narrow: the same in 16 bits, if that is all that there is; squares:
    |v_i|^2, (B, n); scale: (B,); mask: bool, (B, n); counts: players, (B,); rank: whose random numbers a player takes,
    (B, n), by column if None; seed: one integer; chances, row: `Chances`.
    Returns the values (B, 2, n); of BV's coalitions S_k . v_i, (B, K, n), and |S_k|^2, (B, K); of the coalition of all
    the same, (B, n) and (B,); membership as numbers in SV's, in BV's and in that of all, (B, 2 K + 1, n); and what the
    backward pass needs. Its twin: `spinformer.games.one_pass`.
    """
    from spinformer.kernels.device import players as device

    (batch, n, d), draws = values.shape, 2 * budget + 1
    values = values.contiguous()
    inside = values.new_empty(batch, draws, n)
    size, blank = _players(batch, n), squares
    grid = (batch, -(-n // size))
    device.coalitions[grid](
        seed_on(values.device, seed),
        blank if rank is None else rank.contiguous(), blank if mask is None else mask.contiguous(), inside,
        n, budget, RANKED=rank is not None, MASKED=mask is not None, SHARED=shared, K=block(draws), N=size,
    )  # fmt: skip
    sums = long_product(inside, values) if narrow is None else narrow_product(inside.to(narrow.dtype), narrow)
    products = split_product(sums, narrow.mT) if _pays(narrow) else torch.bmm(sums, values.mT)
    totals, means, counted = values.new_empty(batch, draws), values.new_empty(batch, 16), n > WIDE
    tangents = values.new_empty(batch, draws, 8)
    sizes = inside.sum(-1) if counted else values.new_empty(batch, draws)
    device.scalars[(batch,)](
        sums, inside, squares.contiguous(), scale.contiguous(), chances, counts, totals, sizes, means, tangents,
        n, d, draws, chances.shape[1], ROW=row, COUNTED=counted, K=block(draws), D=min(64, block(d)), **_across(n),
    )  # fmt: skip
    result = values.new_empty(batch, 2, n)
    device.marginals[grid](
        inside, products, squares.contiguous(), totals, sizes, scale.contiguous(), tangents, means,
        blank if mask is None else mask.contiguous(), result, n, budget,
        MASKED=mask is not None, K=_draws(budget), N=size,
    )  # fmt: skip
    bv = slice(budget, 2 * budget)
    cut = (products[:, bv], totals[:, bv], products[:, -1], totals[:, -1])
    own, squared, align, grand = (part.clone(memory_format=torch.contiguous_format) for part in cut)
    return result, own, squared, align, grand, inside, products, totals, sums, sizes, means, tangents


@operator("value_players_backward")
def value_players_backward(
    gradient: Tensor,
    to_products: Tensor | None,
    to_totals: Tensor | None,
    to_align: Tensor | None,
    to_grand: Tensor | None,
    values: Tensor,
    narrow: Tensor | None,
    squares: Tensor,
    scale: Tensor,
    mask: Tensor | None,
    counts: Tensor,
    inside: Tensor,
    products: Tensor,
    totals: Tensor,
    sums: Tensor,
    sizes: Tensor,
    means: Tensor,
    tangents: Tensor,
    chances: Tensor,
    row: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of values, squares and scale; to_products, to_totals, to_align, to_grand: those from elsewhere."""
    from spinformer.kernels.device import players_backward as device

    (batch, n, _), draws = values.shape, products.shape[1]
    budget = draws // 2
    size = _players(batch, n)
    blocks = -(-n // size)
    whole_products, whole_totals = torch.empty_like(products), torch.empty_like(totals)
    to_squares, out = torch.empty_like(squares), values.new_empty(batch, 2)
    part_totals = values.new_empty(batch, blocks, draws)
    parts, closed = values.new_empty(batch, blocks, 2 * budget, 8), values.new_empty(batch, blocks, 8)
    given = gradient.contiguous()
    masked = given if mask is None else mask.contiguous()
    squares, scale = squares.contiguous(), scale.contiguous()
    device.marginals_backward[(batch, blocks)](
        given, given if to_products is None else to_products.contiguous(), inside, products, squares, totals, sizes,
        scale, tangents, means, masked, whole_products, to_squares, part_totals, parts, closed, n, budget, blocks,
        MASKED=mask is not None, GIVEN=to_products is not None, K=_draws(budget), N=size,
    )  # fmt: skip
    if blocks > BLOCKS:
        blocks, closed, part_totals = 1, closed.sum(1), part_totals.sum(1)
        parts = parts.sum(1, dtype=torch.float64)
    device.scalars_backward[(batch,)](
        parts, closed, part_totals, given if to_totals is None else to_totals.contiguous(), means, sizes, scale,
        chances, counts, whole_totals, out, n, budget, blocks, chances.shape[1],
        ROW=row, GIVEN=to_totals is not None, K=block(draws), **_across(n),
    )  # fmt: skip
    if to_align is not None:
        whole_products[:, -1] += to_align
    if to_grand is not None:
        whole_totals[:, -1] += to_grand
    turned = split_product(whole_products, narrow) if _pays(narrow) else long_product(whole_products, values)
    to_sums = torch.addcmul(turned, sums, whole_totals[..., None], value=2)
    to_values = torch.bmm(torch.cat([whole_products, inside], 1).mT, torch.cat([sums, to_sums], 1))
    return to_values, to_squares + out[:, :1], out[:, 1].clone()


@value_players.register_fake
def _(
    values: Tensor, narrow: Any, squares: Any, scale: Any, mask: Any, counts: Any, rank: Any, seed: Any, chances: Any,
    row: Any, budget: int, shared: Any,
) -> Any:  # fmt: skip
    (batch, n, d), draws = values.shape, 2 * budget + 1
    given = [(batch, 2, n), (batch, budget, n), (batch, budget), (batch, n), (batch,), (batch, draws, n)]
    kept = [(batch, draws, n), (batch, draws), (batch, draws, d), (batch, draws), (batch, 16), (batch, draws, 8)]
    return tuple(values.new_empty(shape) for shape in given + kept)


@value_players_backward.register_fake
def _(gradient: Any, *rest: Any) -> Any:
    values, _, squares, scale = rest[4:8]
    return tuple(x.new_empty(x.shape) for x in (values, squares, scale))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    values, narrow, squares, scale, mask, counts, _, _, chances, ctx.row, *_ = inputs
    ctx.save_for_backward(values, narrow, squares, scale, mask, counts, *output[5:], chances)
    ctx.mark_non_differentiable(*output[5:])
    ctx.set_materialize_grads(False)


def _slopes(ctx: Any, gradient: Any, to_products: Any, to_totals: Any, to_align: Any, to_grand: Any, *_: Any) -> Any:
    values, *given = ctx.saved_tensors
    if gradient is None:
        gradient = values.new_zeros(values.shape[0], 2, values.shape[1])
    slopes = value_players_backward(gradient, to_products, to_totals, to_align, to_grand, values, *given, ctx.row)
    return (slopes[0], None, *slopes[1:], *[None] * 8)


value_players.register_autograd(_slopes, setup_context=_keep)
