"""Products with low-rank couplings J = U diag(w) U' - diag(d), their diagonal, and the gradients of both."""

from typing import Any

import torch
from torch import Tensor

from spinformer._base.products import long_product
from spinformer.kernels.factors import LARGEST_RANK, Factored, can_factor
from spinformer.kernels.low_rank import hollow_matrix, product_slopes, row_squares
from spinformer.kernels.support import usable

MOST_SPINS = 16_384  # of a matrix that a kernel makes: its blocks are numbered within 16 bits
MOST_OTHERS = 64  # columns beside the narrow ones, of which one program makes a block of the matrix


def low_rank_product(
    factors: Tensor, weights: Tensor, diagonal: Tensor, x: Tensor, narrow: Tensor | None = None
) -> Tensor:
    """J x = U w (U' x) - d x,   d_i = sum_r w_r U_ir^2

    factors: U, (B, n, R); weights: w, (B, R); diagonal: d, (B, n), whose own gradient is left out: those of U and w
    include it; x: (B, n, 1); narrow: as in `LowRankCouplings`.
    """
    product: Tensor = _LowRankProduct.apply(factors, weights, diagonal.detach(), x, narrow)
    return product


def _system(factors: Tensor, weights: Tensor, diagonal: Tensor, narrow: Tensor | None, x: Tensor) -> Factored | None:
    """Couplings for kernels that multiply with x; None where there are none, or where a graph is asked for."""
    tensors = [factors, weights, diagonal, *([] if narrow is None else [narrow])]
    asked = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (*tensors, x))
    if asked or torch.compiler.is_compiling() or not can_factor(tensors) or not usable(x):
        return None
    return Factored.of(tensors)


class _LowRankProduct(torch.autograd.Function):
    """y = U w (U' m) - d m,   d_i = sum_r w_r U_ir^2,   dm = U w (U' g) - d g;   dU, dw: see `slopes_of_products`."""

    @staticmethod
    def forward(
        ctx: Any, factors: Tensor, weights: Tensor, diagonal: Tensor, m: Tensor, narrow: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(factors, weights, diagonal, m, narrow)
        return _product(factors, weights, diagonal, narrow, m)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors, weights, diagonal, m, narrow = ctx.saved_tensors
        (g,) = gradients
        to_factors = to_weights = to_m = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            to_factors, to_weights = slopes_of_products(factors, weights, torch.cat([m, g], -1).mT)
        if ctx.needs_input_grad[3]:
            to_m = _product(factors, weights, diagonal, narrow, g)
        return to_factors, to_weights, None, to_m, None


def _product(factors: Tensor, weights: Tensor, diagonal: Tensor, narrow: Tensor | None, x: Tensor) -> Tensor:
    """J x, (B, n, 1)."""
    system = _system(factors, weights, diagonal, narrow, x)
    if system is not None:
        return system.product(x.squeeze(-1))[..., None]
    inner = torch.bmm(factors.mT, x)
    return torch.addcmul(torch.bmm(factors, weights[..., None] * inner), diagonal[..., None], x, value=-1)


def slopes_of_products(factors: Tensor, weights: Tensor, x: Tensor) -> list[Tensor]:
    """dU_ir = w_r (g_i c_r + m_i e_r - 2 g_i m_i U_ir),   dw_r = c_r e_r - sum_i g_i m_i U_ir^2

    with c = U' m and e = U' g: the gradients of U and w in J m from g, that of J m. weights: (B, R); x: m and g, or two
    such pairs, whose gradients are added, (B, 2 or 4, n). What the diagonal of J owes to U and w is included.
    """
    if _one_pass(factors, weights, x):
        return product_slopes(factors, weights, x)
    pulled = long_product(factors.mT, x.mT)  # (B, R, 2 or 4)
    m, g = x[:, ::2].mT, x[:, 1::2].mT  # (B, n, 1 or 2)
    crossed = factors * (g * m).sum(-1, keepdim=True)
    to_weights = (pulled[..., ::2] * pulled[..., 1::2]).sum(-1) - (crossed * factors).sum(1)
    turned = torch.stack([pulled[..., 1::2], pulled[..., ::2]], -1).flatten(2)  # e and c of each pair
    to_factors = torch.baddbmm(crossed, x.mT, turned.mT, beta=-2).mul_(weights[:, None])
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


def hollow_product(factors: Tensor, weights: Tensor, narrow: Tensor | None) -> Tensor:
    """U diag(w) U' with zeros on its diagonal, (B, n, n); narrow: as in `LowRankCouplings`."""
    fits = narrow is not None and factors.shape[2] - narrow.shape[2] <= MOST_OTHERS and factors.shape[1] <= MOST_SPINS
    if fits and usable(factors, weights) and not torch.compiler.is_compiling():
        matrix: Tensor = _Matrix.apply(factors, weights, narrow)
        return matrix
    return hollow(torch.bmm(factors * weights[:, None], factors.mT))


def hollow(matrix: Tensor) -> Tensor:
    """`matrix` with zeros on the diagonal."""
    return matrix.masked_fill(torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device), 0.0)


class _Matrix(torch.autograd.Function):
    """J = U diag(w) U',   dU = (G + G') U diag(w),   dw_r = sum_ij G_ij U_ir U_jr, J and G without diagonals."""

    @staticmethod
    def forward(ctx: Any, factors: Tensor, weights: Tensor, narrow: Tensor) -> Tensor:
        ctx.save_for_backward(factors, weights)
        return hollow_matrix(factors, weights, narrow)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors, weights = ctx.saved_tensors
        slope = hollow(gradients[0])
        along = torch.bmm(slope + slope.mT, factors)
        return along * weights[:, None], (along * factors).sum(1) / 2, None


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
