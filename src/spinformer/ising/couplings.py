"""Couplings between spins: a matrix that is stored, or one that is only ever multiplied with."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from spinformer import checks
from spinformer.precision import widen


class Couplings(ABC):
    """J: symmetric, (B, n, n), J_ii = 0.

    `matvec` is J m; `squared_matvec` is (J o J) x, with the elementwise square, for the TAP correction; `dense` the
    matrix itself. `tensors` and `of` take couplings apart and put them together again.
    """

    batch: int
    spins: int

    @abstractmethod
    def matvec(self, m: Tensor) -> Tensor:
        """sum over j of J_ij m_j: (B, n) -> (B, n)."""

    @abstractmethod
    def squared_matvec(self, x: Tensor) -> Tensor:
        """sum over j of J_ij^2 x_j: (B, n) -> (B, n)."""

    @abstractmethod
    def dense(self) -> Tensor:
        """The matrix: (B, n, n)."""

    @abstractmethod
    def scaled(self, factor: Tensor) -> "Couplings":
        """factor J, with `factor` (B,)."""

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """What it is made of."""

    @classmethod
    @abstractmethod
    def of(cls, tensors: Sequence[Tensor]) -> "Couplings":
        """The inverse of `tensors`."""

    def norm(self, steps: int = 8) -> Tensor:
        """Largest |eigenvalue|, (B,), from below: |J x| for the unit vector x that `steps` Lanczos steps find.

        The start is |J 1|, which permutes with the spins. Gradients pass through the last product alone, which is the
        gradient of the eigenvalue where x has converged.
        """
        with torch.no_grad():
            first = self.tensors()[0]
            start = torch.ones(self.batch, self.spins, dtype=first.dtype, device=first.device)
            basis = _unit(self.matvec(start).abs() + 1e-3 * start)[:, None]  # (B, k, n)
            images = self.matvec(basis[:, 0])[:, None]
            for _ in range(min(steps, self.spins) - 1):
                fresh = images[:, -1:]
                length = fresh.norm(dim=-1, keepdim=True)
                for _ in range(2):  # once more against rounding
                    fresh = fresh - (fresh @ basis.mT) @ basis
                spent = fresh.norm(dim=-1, keepdim=True) <= 1e-4 * length  # nothing new but rounding
                fresh = _unit(fresh).masked_fill(spent, 0.0)
                basis = torch.cat([basis, fresh], 1)
                images = torch.cat([images, self.matvec(fresh[:, 0])[:, None]], 1)
            small = images @ basis.mT  # J within the basis
            values, vectors = torch.linalg.eigh((small + small.mT) / 2)
            best = values.abs().argmax(-1)[:, None, None].expand(-1, small.shape[-1], 1)
            x = _unit((vectors.gather(2, best) * basis).sum(1))
        return self.matvec(x).norm(dim=-1)


class DenseCouplings(Couplings):
    """J as it stands: (B, n, n). The diagonal is ignored (Eq. 16 sums over j != i)."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix
        self.batch, self.spins = matrix.shape[0], matrix.shape[-1]

    def matvec(self, m: Tensor) -> Tensor:
        """One matrix product, O(n^2)."""
        return (self.matrix @ m[..., None]).squeeze(-1) - self._diagonal() * m

    def squared_matvec(self, x: Tensor) -> Tensor:
        """One matrix product with the elementwise square, O(n^2)."""
        return (self.matrix.square() @ x[..., None]).squeeze(-1) - self._diagonal().square() * x

    def dense(self) -> Tensor:
        """The matrix with zero diagonal."""
        return self.matrix - torch.diag_embed(self._diagonal())

    def scaled(self, factor: Tensor) -> "DenseCouplings":
        """factor J."""
        return DenseCouplings(self.matrix * factor[:, None, None])

    def tensors(self) -> tuple[Tensor, ...]:
        """The matrix."""
        return (self.matrix,)

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> "DenseCouplings":
        """From the matrix."""
        return cls(tensors[0])

    def _diagonal(self) -> Tensor:
        return self.matrix.diagonal(dim1=-2, dim2=-1)


class LowRankCouplings(Couplings):
    """J = U diag(w) U' off the diagonal, 0 on it.

    factors: U, (B, n, R); weights: w, (B, R). A product with a vector costs O(n R) and never forms the matrix.
    """

    def __init__(self, factors: Tensor, weights: Tensor, diagonal: Tensor | None = None) -> None:
        self.factors, self.weights = factors, weights
        self.batch, self.spins = factors.shape[:2]
        if diagonal is None:  # of U diag(w) U', (B, n)
            diagonal = (factors.square() @ weights[..., None]).squeeze(-1)
        self.diagonal = diagonal

    def matvec(self, m: Tensor) -> Tensor:
        """Two thin matrix products, O(n R)."""
        product: Tensor = _LowRankProduct.apply(self.factors, self.weights, self.diagonal.detach(), m)
        return product

    def squared_matvec(self, x: Tensor) -> Tensor:
        """Row sums of (U w) (U' diag(x) U) (U w)', O(n R^2)."""
        weighted = self.factors * self.weights[:, None]
        inner = self.factors.mT @ (self.factors * x[..., None])  # (B, R, R)
        return ((weighted @ inner) * weighted).sum(-1) - self.diagonal.square() * x

    def dense(self) -> Tensor:
        """The matrix, O(n^2 R)."""
        return (self.factors * self.weights[:, None]) @ self.factors.mT - torch.diag_embed(self.diagonal)

    def scaled(self, factor: Tensor) -> "LowRankCouplings":
        """factor J."""
        return LowRankCouplings(self.factors, self.weights * factor[:, None], self.diagonal * factor[:, None])

    def tensors(self) -> tuple[Tensor, ...]:
        """Factors, weights and the diagonal that is left out."""
        return self.factors, self.weights, self.diagonal

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> "LowRankCouplings":
        """From factors, weights and diagonal."""
        return cls(*tensors)


class _LowRankProduct(torch.autograd.Function):
    """y = U w (U' m) - d m, d_i = sum_r w_r U_ir^2; its gradient with respect to U takes one pass over U.

    dU_ir = w_r (g_i c_r + m_i e_r - 2 g_i m_i U_ir),  dw_r = c_r e_r - sum_i g_i m_i U_ir^2,  dm = U w e - d g,
    with c = U' m and e = U' g. The diagonal d comes ready, and its own dependence on U and w is in these formulas.
    """

    @staticmethod
    def forward(ctx: Any, factors: Tensor, weights: Tensor, diagonal: Tensor, m: Tensor) -> Tensor:
        inner = (m[:, None] @ factors).squeeze(1)
        ctx.save_for_backward(factors, weights, diagonal, m, inner)
        return (factors @ (weights * inner)[..., None]).squeeze(-1) - diagonal * m

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors, weights, diagonal, m, inner = ctx.saved_tensors
        (g,) = gradients
        outer = (g[:, None] @ factors).squeeze(1)
        to_factors = to_weights = to_m = None
        if ctx.needs_input_grad[0] or ctx.needs_input_grad[1]:
            crossed = factors * (g * m)[..., None]
            to_weights = inner * outer - (crossed * factors).sum(1)
            left, right = torch.stack([g, m], -1), torch.stack([inner, outer], 1)
            to_factors = torch.baddbmm(crossed, left, right, beta=-2).mul_(weights[:, None])
        if ctx.needs_input_grad[3]:
            to_m = (factors @ (weights * outer)[..., None]).squeeze(-1) - diagonal * g
        return to_factors, to_weights, None, to_m


def as_couplings(couplings: Tensor | Couplings, batch: int, spins: int) -> Couplings:
    """Couplings of this shape; a tensor is checked to be finite and symmetric."""
    if isinstance(couplings, Couplings):
        if (couplings.batch, couplings.spins) != (batch, spins):
            raise ValueError(
                f"couplings must be for {batch} systems of {spins} spins; got {couplings.batch} of {couplings.spins}"
            )
        return couplings
    checks.floating("couplings", couplings, (3,))
    checks.shape("couplings", couplings, (batch, spins, spins))
    checks.finite("couplings", couplings)
    matrix = widen(couplings)
    if not torch.compiler.is_compiling():
        worst = float((matrix - matrix.mT).detach().abs().max())
        size = float(matrix.detach().abs().max())
        if worst > 1e-4 * max(size, 1e-30):
            raise ValueError(f"couplings must be symmetric, J_ij = J_ji; they differ by up to {worst:.3g}")
    return DenseCouplings(matrix)


def _unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
