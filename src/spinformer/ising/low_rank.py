"""Products with low-rank couplings J = U diag(w) U' - diag(d), their diagonal, and the gradients of both."""

from typing import Any

import torch
from torch import Tensor

from spinformer._base.products import long_product, mixed_product
from spinformer.kernels.factors import LARGEST_RANK, Factored, can_factor
from spinformer.kernels.gathered import Gathered, gathered_of
from spinformer.kernels.low_rank import hollow_matrix, product_slopes, row_squares
from spinformer.kernels.support import usable

MOST_SPINS = 16_384  # of a matrix that a kernel makes: its blocks are numbered within 16 bits
MOST_OTHERS = 64  # columns beside the narrow ones, of which one program makes a block of the matrix


def low_rank_product(
    factors: Tensor, weights: Tensor, diagonal: Tensor, x: Tensor, narrow: Tensor | None = None
) -> Tensor:
    """J x = U w (U' x) - d x,   d_i = sum_r w_r U_ir^2

    factors: U, (B, n, R); weights: w, (B, R); diagonal: d, (B, n), whose own gradient is left out: those of U and w
    include it; x: (B, n, 1); narrow: as in `LowRankCouplings`, here and below.
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
        ctx.gathered = gathered_of(factors)
        return _product(factors, weights, diagonal, narrow, m)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors, weights, diagonal, m, narrow = ctx.saved_tensors
        (g,) = gradients
        to_factors = to_weights = to_m = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            x = torch.cat([m, g], -1).mT
            to_factors, to_weights = slopes_of_products(factors, weights, x, ctx.gathered)
        if ctx.needs_input_grad[3]:
            to_m = _product(factors, weights, diagonal, narrow, g)
        return to_factors, to_weights, None, to_m, None


def _product(factors: Tensor, weights: Tensor, diagonal: Tensor, narrow: Tensor | None, x: Tensor) -> Tensor:
    """J x, (B, n, 1)."""
    system = _system(factors, weights, diagonal, narrow, x)
    if system is not None:
        return system.product(x.squeeze(-1))[..., None]
    if narrow is not None:
        factors = torch.cat([narrow.float(), factors], -1)
    inner = torch.bmm(factors.mT, x)
    return torch.addcmul(torch.bmm(factors, weights[..., None] * inner), diagonal[..., None], x, value=-1)


def slopes_of_products(factors: Tensor, weights: Tensor, x: Tensor, gathered: Gathered | None = None) -> list[Tensor]:
    """dU_ir = w_r (g_i c_r + m_i e_r - 2 g_i m_i U_ir),   dw_r = c_r e_r - sum_i g_i m_i U_ir^2

    with c = U' m and e = U' g: the gradients of U and w in J m from g, that of J m. weights: (B, R); x: m and g, or two
    such pairs, whose gradients are added, (B, 2 or 4, n). What the diagonal of J owes to U and w is included.
    gathered: where the gradient of narrow columns goes, of which `factors` has none.
    """
    if gathered is not None:
        split = weights.shape[1] - factors.shape[2]
        to_factors, to_others = slopes_of_products(factors, weights[:, split:], x)
        return [to_factors, torch.cat([gathered.add_products(weights[:, :1], x), to_others], -1)]
    if _one_pass(factors, weights, x):
        return product_slopes(factors, weights, x)
    pulled = long_product(factors.mT, x.mT)  # (B, R, 2 or 4)
    m, g = x[:, ::2].mT, x[:, 1::2].mT  # (B, n, 1 or 2)
    crossed = factors * (g * m).sum(-1, keepdim=True)
    to_weights = (pulled[..., ::2] * pulled[..., 1::2]).sum(-1) - (crossed * factors).sum(1)
    turned = torch.stack([pulled[..., 1::2], pulled[..., ::2]], -1).flatten(2)  # e and c of each pair
    to_factors = torch.baddbmm(crossed, x.mT, turned.mT, beta=-2).mul_(weights[:, None])
    return [to_factors, to_weights]


def gathered_slopes(
    factors: Tensor,
    weights: Tensor,
    gathered: Gathered | None,
    x: Tensor,
    rows: Tensor | None = None,
    to_whole: Tensor | None = None,
    to_weights: Tensor | None = None,
) -> list[Tensor]:
    """`slopes_of_products` with narrow columns, and, of a few samples `rows`, the gradients of all factors and weights

    to_whole: (rows, n, R); to_weights: (rows, R); what x holds of these samples is 0.
    """
    assert gathered is not None
    slopes = slopes_of_products(factors, weights, x, gathered)
    if rows is not None and to_whole is not None and to_weights is not None:
        split = weights.shape[1] - factors.shape[2]
        slopes[0][rows], slopes[1][rows] = to_whole[..., split:], to_weights
        gathered.add_whole(x.new_zeros(*factors.shape[:2], split).index_copy(0, rows, to_whole[..., :split]))
    return slopes


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
    if narrow is not None:
        matrix: Tensor = _Matrix.apply(factors, weights, narrow)
        return matrix
    return hollow(torch.bmm(factors * weights[:, None], factors.mT))


def hollow(matrix: Tensor) -> Tensor:
    """`matrix` with zeros on the diagonal."""
    return matrix.masked_fill(torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device), 0.0)


class _Matrix(torch.autograd.Function):
    """J = U diag(w) U',   dU = (G + G') U diag(w),   dw_r = sum_ij G_ij U_ir U_jr, J and G without diagonals.

    That of the narrow columns goes where it is gathered, and their one weight's is spread over all of them.
    """

    @staticmethod
    def forward(ctx: Any, factors: Tensor, weights: Tensor, narrow: Tensor) -> Tensor:
        ctx.save_for_backward(factors, weights, narrow)
        ctx.gathered = gathered_of(factors)
        fits = factors.shape[2] <= MOST_OTHERS and factors.shape[1] <= MOST_SPINS
        if fits and usable(factors, weights):
            return hollow_matrix(factors, weights, narrow)
        return hollow_product(torch.cat([narrow.float(), factors], -1), weights, None)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors, weights, narrow = ctx.saved_tensors
        slope, split = hollow(gradients[0]), narrow.shape[2]
        both, own = slope + slope.mT, weights[:, split:]
        along, first = torch.bmm(both, factors), mixed_product(both, narrow)
        if ctx.gathered is not None:
            ctx.gathered.add_whole(first * weights[:, :1, None])
        spread = (first * narrow).sum((1, 2)) / (2 * split)
        to_weights = torch.cat([spread[:, None].expand(-1, split), (along * factors).sum(1) / 2], -1)
        return along * own[:, None], to_weights, None


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
