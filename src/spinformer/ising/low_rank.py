"""Products with low-rank couplings J = U diag(w) U' - diag(d), their diagonal, and the gradients of both."""

from typing import Any

import torch
from torch import Tensor

from spinformer.kernels.factors import LARGEST_RANK
from spinformer.kernels.low_rank import product_slopes, row_squares
from spinformer.kernels.support import usable


def low_rank_product(factors: Tensor, weights: Tensor, diagonal: Tensor, x: Tensor) -> Tensor:
    """J x = U w (U' x) - d x,   d_i = sum_r w_r U_ir^2

    factors: U, (B, n, R); weights: w, (B, R); diagonal: d, (B, n), whose own gradient is left out: those of U and w
    include it; x: (B, n, 1).
    """
    product: Tensor = _LowRankProduct.apply(factors, weights, diagonal.detach(), x)
    return product


class _LowRankProduct(torch.autograd.Function):
    """y = U w (U' m) - d m,   d_i = sum_r w_r U_ir^2,   dm = U w (U' g) - d g;   dU and dw: see `slopes_of_product`."""

    @staticmethod
    def forward(ctx: Any, factors: Tensor, weights: Tensor, diagonal: Tensor, m: Tensor) -> Tensor:
        weights, diagonal = weights[..., None], diagonal[..., None]
        inner = torch.bmm(factors.mT, m)  # (B, R, 1)
        ctx.save_for_backward(factors, weights, diagonal, m, inner)
        return torch.addcmul(torch.bmm(factors, weights * inner), diagonal, m, value=-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors, weights, diagonal, m, inner = ctx.saved_tensors
        (g,) = gradients
        outer = torch.bmm(factors.mT, g)
        to_factors = to_weights = to_m = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            to_factors, to_weights = slopes_of_product(factors, weights, g, m, torch.cat([inner, outer], -1))
        if ctx.needs_input_grad[3]:
            to_m = torch.addcmul(torch.bmm(factors, weights * outer), diagonal, g, value=-1)
        return to_factors, to_weights, None, to_m


def slopes_of_product(factors: Tensor, weights: Tensor, g: Tensor, m: Tensor, pulled: Tensor) -> list[Tensor]:
    """dU_ir = w_r (g_i c_r + m_i e_r - 2 g_i m_i U_ir),   dw_r = c_r e_r - sum_i g_i m_i U_ir^2

    The gradients of U and w in J m from that of J m. weights: (B, R, 1); g, m: (B, n, 1); pulled: c = U' m and
    e = U' g, (B, R, 2). What the diagonal of J owes to U and w is included.
    """
    if _one_pass(factors, weights, g, m, pulled):
        return product_slopes(factors, weights.squeeze(-1), g, m, pulled)
    crossed = factors * (g * m)
    to_weights = pulled.prod(-1) - (crossed * factors).sum(1)
    to_factors = torch.baddbmm(crossed, torch.cat([g, m], -1), pulled.mT, beta=-2).mul_(weights.mT)
    return [to_factors, to_weights]


def _one_pass(*tensors: Tensor) -> bool:
    """Whether a kernel can do it: its result has no graph, so none may be asked for."""
    asked = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    return not asked and not torch.compiler.is_compiling() and usable(*tensors) and tensors[0].shape[2] <= LARGEST_RANK


def diagonal_of(factors: Tensor, weights: Tensor) -> Tensor:
    """d_i = sum_r w_r U_ir^2: the diagonal of U diag(w) U', (B, n)"""
    if usable(factors, weights) and factors.shape[2] <= LARGEST_RANK and not torch.compiler.is_compiling():
        diagonal: Tensor = _Diagonal.apply(factors, weights)
        return diagonal
    return (factors.square() @ weights[..., None]).squeeze(-1)


class _Diagonal(torch.autograd.Function):
    """d_i = sum_r w_r U_ir^2,   dU_ir = 2 g_i w_r U_ir,   dw_r = sum_i g_i U_ir^2, without U^2 in memory for it."""

    @staticmethod
    def forward(ctx: Any, factors: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(factors, weights)
        return row_squares(factors, weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        factors, weights = ctx.saved_tensors
        g = gradients[0][..., None]
        return factors * (2 * g) * weights[:, None], torch.bmm(factors.square().mT, g).squeeze(-1)
