"""Shapley and Banzhaf values of norm games with their control variate: a few launches, nothing of size K n d kept."""

from typing import Any

import torch
from torch import Tensor

from spinformer._base.products import long_product, narrow_product
from spinformer._base.rng import seed_on
from spinformer.kernels.chances import WIDE
from spinformer.kernels.gathered import gathered_of
from spinformer.kernels.operator import operator
from spinformer.kernels.split import products_across, products_along
from spinformer.kernels.support import block, rows_of, usable

MAX_BUDGET = 256
PROGRAMS = 1056  # that keep a large GPU busy, eight for each of its processors
SLOTS = 32  # of coalitions, in a word of membership
ROWS, ROW_WARPS = 8, 4  # slots of a program of the backward pass, and its warps
BLOCKS = 32  # of players, whose parts in a game's numbers are added up


def can_value_players(values: Tensor, budget: int) -> bool:
    """Whether the operator takes these vectors and so many coalitions."""
    return usable(values) and budget <= MAX_BUDGET


def _across(n: int) -> dict[str, int]:
    """Players that a program of a game meets at once, and warps."""
    size = min(1024 if n > WIDE else 512, block(n))
    return {"N": size, "num_warps": max(4, size // 64)}


def _tile(batch: int, n: int) -> dict[str, int]:
    """Players and coalitions of a tile, and warps: small where a launch would have too few programs for a large GPU."""
    if batch * -(-n // 256) >= PROGRAMS:
        return {"N": rows_of(n, 256), "K": 4, "num_warps": 1}
    small = batch * -(-n // 64) < PROGRAMS // 4
    return {"N": rows_of(n, min(32 if small else 64, block(n))), "K": 32 if small else 16, "num_warps": 4}


def _spans(n: int, size: int, programs: int, most: int) -> tuple[int, int]:
    """How many programs share n players, where so many have each of them anyway, and how many each takes."""
    blocks = min(-(-n // size), -(-PROGRAMS // programs), max(1, most))
    span = -(-n // (blocks * size)) * size
    return -(-n // span), span


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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """mean over k of (Delta_i v(T_k) - Delta_i h(T_k)) + the index of h, for SV and BV, v(C) = scale |S_C|

    values: (B, n, d), 0 at padding; narrow: the same in 16 bits, if that is all that there is, and the values are what
    `NarrowVectors` has in their place; squares: |v_i|^2, (B, n); scale: (B,); mask: bool, (B, n); counts: players,
    (B,); rank: whose random numbers a player takes, (B, n), by column if None; seed: one integer; chances, row:
    `Chances`.
    Returns the values (B, 2, n); of BV's coalitions S_k . v_i, (B, K, n), and |S_k|^2, (B, K); of the coalition of all
    the same, (B, n) and (B,); membership as numbers in SV's, in BV's and in that of all, (B, 2 K + 1, n); and what the
    backward pass needs. Its twin: `spinformer.games.one_pass`.
    """
    from spinformer.kernels.device import coalitions as make
    from spinformer.kernels.device import players as device

    (batch, n, _), draws = values.shape, 2 * budget + 1
    values, d = values.contiguous(), (values if narrow is None else narrow).shape[2]
    inside, slots = values.new_empty(batch, draws, n), 4 * ((budget + 1) // 2)
    spare = inside if narrow is None else narrow.new_empty(batch, draws, n)
    words, blank, across = -(-slots // SLOTS), squares, min(128, block(n))
    bits = values.new_empty(batch, words, n, dtype=torch.int32)
    blocks, span = _spans(n, across, batch * words, PROGRAMS)
    masked = blank if mask is None else mask.contiguous()
    make.draw[(batch, blocks, words)](
        seed_on(values.device, seed), blank if rank is None else rank.contiguous(), masked, bits, n, budget, span,
        RANKED=rank is not None, MASKED=mask is not None, SHARED=shared, N=across,
    )  # fmt: skip
    across = rows_of(n, across)
    make.members[(batch, -(-n // across), words)](
        bits, masked, inside, spare, n, budget, MASKED=mask is not None, NARROW=narrow is not None, N=across
    )
    sums = long_product(inside, values) if narrow is None else narrow_product(spare, narrow)
    products = torch.bmm(sums, values.mT) if narrow is None else products_across(sums, narrow)
    means, tangents = values.new_empty(batch, 16), values.new_empty(batch, 9, words * SLOTS)
    squared, grand = values.new_empty(batch, budget), values.new_empty(batch)
    squares, scale, rows = squares.contiguous(), scale.contiguous(), 2 * words
    device.scalars[(batch, rows + 2)](
        sums, bits, squares, scale, chances, counts, squared, grand, means, tangents,
        n, d, budget, chances.shape[1], rows, ROW=row, K=SLOTS // 2, D=min(128, block(d)), **_across(n),
    )  # fmt: skip
    tile, result = _tile(batch, n), values.new_empty(batch, 2, n)
    own, align = values.new_empty(batch, budget, n), values.new_empty(batch, n)
    device.marginals[(batch, -(-n // tile["N"]))](
        bits, products, squares, scale, tangents, means, masked, result, own, align,
        n, budget, MASKED=mask is not None, **tile,
    )  # fmt: skip
    return result, own, squared, align, grand, inside, products, sums, bits, means, tangents


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
    sums: Tensor,
    bits: Tensor,
    means: Tensor,
    tangents: Tensor,
    chances: Tensor,
    row: int,
) -> tuple[list[Tensor], Tensor, Tensor]:
    """Gradients of values, squares and scale; to_products, to_totals, to_align, to_grand: those from elsewhere.

    That of values is one tensor or, of those that are known in 16 bits alone, W, R and Q with dV = W' R + inside' Q.
    """
    from spinformer.kernels.device import players_backward as device

    (batch, n, _), draws = values.shape, products.shape[1]
    budget, words, size = draws // 2, bits.shape[1], min(128, block(n))
    chunks = -(-4 * ((budget + 1) // 2) // ROWS)
    blocks, span = _spans(n, size, batch * (chunks + 1), BLOCKS)
    whole_products, whole_totals = torch.empty_like(products), values.new_empty(batch, draws)
    to_squares, to_scale = torch.empty_like(squares), torch.empty_like(scale)
    square_parts, parts = values.new_empty(batch, chunks + 1, n), values.new_empty(batch, blocks, 5, words * SLOTS)
    closed_parts, given = values.new_empty(batch, blocks, 8), gradient.contiguous()
    from_products, from_totals, from_align, from_grand = (
        given if slope is None else slope.contiguous() for slope in (to_products, to_totals, to_align, to_grand)
    )
    squares, scale = squares.contiguous(), scale.contiguous()
    device.marginals_backward[(batch, chunks + 1, blocks)](
        given, from_products, from_align, bits, products, squares, scale, tangents, means,
        given if mask is None else mask.contiguous(), whole_products, square_parts, parts, closed_parts,
        n, budget, span, chunks, MASKED=mask is not None, GIVEN=to_products is not None,
        ALIGNED=to_align is not None, K=ROWS, N=size, num_warps=ROW_WARPS,
    )  # fmt: skip
    device.scalars_backward[(batch,)](
        parts, closed_parts, square_parts, from_totals, from_grand, means, tangents, scale, chances, counts,
        whole_totals, to_squares, to_scale, n, budget, blocks, chunks, chances.shape[1],
        ROW=row, GIVEN=to_totals is not None, GRAND=to_grand is not None,
        K=block(ROWS * chunks), C=min(8, block(chunks + 1, 1)), **_across(n),
    )  # fmt: skip
    turned = long_product(whole_products, values) if narrow is None else products_along(whole_products, narrow)
    to_sums = torch.addcmul(turned, sums, whole_totals[..., None], value=2)
    to_values = [whole_products, sums, to_sums]
    if narrow is None:
        to_values = [torch.bmm(torch.cat([whole_products, inside], 1).mT, torch.cat([sums, to_sums], 1))]
    return to_values, to_squares, to_scale


@value_players.register_fake
def _(
    values: Tensor, narrow: Any, squares: Any, scale: Any, mask: Any, counts: Any, rank: Any, seed: Any, chances: Any,
    row: Any, budget: int, shared: Any,
) -> Any:  # fmt: skip
    (batch, n, _), draws, d = values.shape, 2 * budget + 1, (values if narrow is None else narrow).shape[2]
    words = -(-4 * ((budget + 1) // 2) // SLOTS)
    given = [(batch, 2, n), (batch, budget, n), (batch, budget), (batch, n), (batch,), (batch, draws, n)]
    kept = [(batch, draws, n), (batch, draws, d), (batch, words, n), (batch, 16), (batch, 9, words * SLOTS)]
    found = [values.new_empty(shape) for shape in given + kept]
    found[8] = found[8].int()
    return tuple(found)


@value_players_backward.register_fake
def _(gradient: Any, *rest: Any) -> Any:
    values, _, squares, scale = rest[4:8]
    to_values, to_squares, to_scale = (x.new_empty(x.shape) for x in (values, squares, scale))
    return [to_values], to_squares, to_scale


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    values, narrow, squares, scale, mask, counts, _, _, chances, ctx.row, *_ = inputs
    ctx.save_for_backward(values, narrow, squares, scale, mask, counts, *output[5:], chances)
    ctx.gathered = gathered_of(values)
    ctx.mark_non_differentiable(*output[5:])
    ctx.set_materialize_grads(False)


def _slopes(ctx: Any, gradient: Any, to_products: Any, to_totals: Any, to_align: Any, to_grand: Any, *_: Any) -> Any:
    values, *given = ctx.saved_tensors
    if gradient is None:
        gradient = values.new_zeros(values.shape[0], 2, values.shape[1])
    to_values, to_squares, to_scale = value_players_backward(
        gradient, to_products, to_totals, to_align, to_grand, values, *given, ctx.row
    )
    if ctx.gathered is not None:
        inside, (whole_products, sums, to_sums) = given[5], to_values
        ctx.gathered.add(whole_products, sums)
        ctx.gathered.add(inside, to_sums)
        to_values = [torch.empty_like(values)]
    return (to_values[0], None, to_squares, to_scale, *[None] * 8)


value_players.register_autograd(_slopes, setup_context=_keep)
