"""Mean interactions of all pairs of a norm game under Gibbs weights, with nothing of size K n^2 kept."""

from typing import Any

import torch
from torch import Tensor

from spinformer.kernels.operator import operator
from spinformer.kernels.support import block, usable

TILE = 32  # players on each side of a block of pairs
MAX_DRAWS = 128  # the backward pass keeps a sum for each coalition on chip


def can_average_pairs(values: Tensor, draws: int) -> bool:
    """Whether the operator takes these vectors and so many coalitions."""
    return usable(values) and draws <= MAX_DRAWS


@operator("average_pairs")
def average_pairs(
    values: Tensor, products: Tensor, inside: Tensor, total: Tensor, squares: Tensor, cold: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """sum over k of w_k Delta_ij |S_(C_k - ij)|,   w = softmax over k of cold |S_(C_k - ij)|

    values: (B, n, d); products: S_k . v_i, (B, K, n); inside: membership, bool, (B, K, n); total: |S_k|^2, (B, K);
    squares: |v_i|^2, (B, n); cold: inverse temperature, (B,), 0 for equal weights. Returns the means (B, n, n), 0 where
    i = j; the logarithm of the sum of weights; and the effective sample size. The means alone have a gradient. Its
    twin: `NormGame.interactions` and `weighted_mean`.
    """
    from spinformer.kernels.device import pairs as device

    batch, n, d = values.shape
    mean = values.new_empty(batch, n, n)
    log_sum, ess = torch.empty_like(mean), torch.empty_like(mean)
    size = inside.sum(-1, dtype=values.dtype)
    tiles = -(-n // TILE)
    arguments = [tensor.contiguous() for tensor in (values, products, inside, total, size, squares, cold)]
    device.forward[(batch, tiles * tiles)](
        *arguments, mean, log_sum, ess, n, d, products.shape[1], tiles, I=TILE, D=min(64, block(d)), num_warps=4
    )
    return mean, log_sum, ess


@operator("average_pairs_backward")
def average_pairs_backward(
    gradient: Tensor,
    values: Tensor,
    products: Tensor,
    inside: Tensor,
    total: Tensor,
    squares: Tensor,
    cold: Tensor,
    mean: Tensor,
    log_sum: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients of values (through v_i . v_j alone), products, total, squares and cold."""
    from spinformer.kernels.device import pairs as device

    batch, n, d = values.shape
    draws, tiles = products.shape[1], -(-n // TILE)
    to_gram, to_products, to_squares = torch.empty_like(mean), torch.empty_like(products), torch.empty_like(squares)
    to_total, to_cold = values.new_empty(batch, tiles, draws), values.new_empty(batch, tiles)
    size = inside.sum(-1, dtype=values.dtype)
    arguments = (gradient, values, products, inside, total, size, squares, cold, mean, log_sum)
    device.backward[(batch, tiles)](
        *[tensor.contiguous() for tensor in arguments],
        *(to_gram, to_products, to_squares, to_total, to_cold),
        *(n, d, draws, tiles),
        I=TILE, J=TILE, D=min(64, block(d)), K=block(draws), num_warps=4,
    )  # fmt: skip
    return torch.bmm(to_gram, values), to_products, to_total.sum(1), to_squares, to_cold.sum(1)


@average_pairs.register_fake
def _(values: Tensor, products: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    shape = (values.shape[0], values.shape[1], values.shape[1])
    return values.new_empty(shape), values.new_empty(shape), values.new_empty(shape)


@average_pairs_backward.register_fake
def _(
    gradient: Tensor,
    values: Tensor,
    products: Tensor,
    inside: Tensor,
    total: Tensor,
    squares: Tensor,
    cold: Tensor,
    *rest: Tensor,
) -> tuple[Tensor, ...]:
    return tuple(
        torch.empty_like(x, memory_format=torch.contiguous_format) for x in (values, products, total, squares, cold)
    )


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, *output[:2])
    ctx.mark_non_differentiable(*output[1:])


def _slopes(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    values, products, total, squares, cold = average_pairs_backward(gradient, *ctx.saved_tensors)
    return values, products, None, total, squares, cold


average_pairs.register_autograd(_slopes, setup_context=_keep)
