"""Mean interactions of all pairs of a norm game under Gibbs weights, with nothing of size K n^2 kept."""

from typing import Any

import torch
from torch import Tensor

from spinformer._base.products import narrow_product
from spinformer.kernels.operator import operator
from spinformer.kernels.support import usable

TILE = 32  # players on each side of a block of pairs
PULLED = 16  # the same of the backward pass: one warp sums over a block without meeting others
MAX_SHARES = 1 << 28  # float32 numbers that the backward pass keeps at a time: 1 GiB
MAX_DRAWS = 128  # a control variate keeps numbers of all coalitions on chip


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

    batch, n, _ = values.shape
    mean = values.new_empty(batch, n, n)
    log_sum, ess = torch.empty_like(mean), torch.empty_like(mean)
    size = inside.sum(-1, dtype=values.dtype)
    tiles = -(-n // TILE)
    given = [tensor.contiguous() for tensor in (products, inside, total, size, squares, cold)]
    device.forward[(batch, tiles * tiles)](
        gram_of(values), *given, mean, log_sum, ess, n, products.shape[1], tiles, I=TILE, num_warps=4
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
    size = inside.sum(-1, dtype=values.dtype)
    given = (gram_of(values), products, inside, total, size, squares, cold, mean, log_sum)
    to_gram, to_products, to_total, to_cold = _pulled_pairs(gradient, *given)
    to_squares = (to_products * (0.5 - inside.to(values.dtype))).sum(1)
    return torch.bmm(to_gram, values), to_products, to_total, to_squares, to_cold


def gram_of(values: Tensor, narrow: Tensor | None = None) -> Tensor:
    """v_i . v_j, (B, n, n); narrow: the vectors in 16 bits, if that is all that there is."""
    return torch.bmm(values, values.mT) if narrow is None else narrow_product(narrow, narrow.mT)


def _pulled_pairs(
    gradient: Tensor,
    gram: Tensor,
    products: Tensor,
    inside: Tensor,
    total: Tensor,
    size: Tensor,
    squares: Tensor,
    level: Tensor,
    mean: Tensor,
    log_sum: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of v_i . v_j, (B, n, n), of S_k . v_i, (B, K, n), of |S_k|^2, (B, K), and of level, (B,).

    That of q_i is the sum over k of (1/2 - c_ki) times that of S_k . v_i. Each block of pairs writes its part of the
    sums: for players K n^2 / 16 numbers a game, kept for as many games as fit in 1 GiB, and for one game at least; for
    coalitions K n^2 / 512, kept for all games.
    """
    from spinformer.kernels.device import pairs_backward as device

    (batch, n, _), draws, tiles = gram.shape, products.shape[1], -(-gram.shape[1] // PULLED)
    blocks = tiles * (tiles + 1) // 2
    to_gram, to_products = torch.empty_like(gram), products.new_empty(products.shape)
    to_total, own = gram.new_empty(batch, draws, blocks), gram.new_empty(batch, blocks)
    first = gradient.contiguous()
    rest = [tensor.contiguous() for tensor in (gram, products, inside, total, size, squares, level, mean, log_sum)]
    given = (first, *rest, first)  # no mask
    games = max(1, MAX_SHARES // max(draws * tiles * n, 1))
    games = min(games - games % 16 if games > 16 else games, batch)  # multiples of 16 keep all parts aligned alike
    shares = gram.new_empty(games, draws, tiles, n)
    sizes = {"MASKED": False, "I": PULLED, "num_warps": 1, "maxnreg": 128}
    for start in range(0, batch, max(games, 1)):
        part = slice(start, start + games)
        tensors = [tensor[part] for tensor in (*given, to_gram)]
        held = shares[: len(tensors[0])]
        grid = (len(held) * tiles * tiles,)
        device.backward[grid](*tensors, held, to_total[part], own[part], n, draws, tiles, **sizes)
        torch.sum(held, 2, out=to_products[part])
    return to_gram, to_products, to_total.sum(-1), own.sum(-1)


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
