"""Couplings between spins: a stored matrix, or a low-rank one that is only multiplied with vectors."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from spinformer._base import checks
from spinformer._base.precision import power_of_two, widen
from spinformer._base.products import long_product
from spinformer.ising.lanczos import first_vector, leading_of, leading_vector
from spinformer.ising.low_rank import diagonal_of, hollow_product, low_rank_product
from spinformer.ising.low_rank import hollow as make_hollow
from spinformer.kernels.narrow import widened
from spinformer.kernels.spins import LANCZOS_STEPS
from spinformer.kernels.support import usable


class Couplings(ABC):
    """J: symmetric, (B, n, n), J_ii = 0.

    `product` is J x for columns (B, n, 1), the shape that matrix products take without a view, used inside loops;
    `matvec` the same for (B, n). `squared_matvec` is (J o J) x, with the elementwise square, for the TAP correction.
    `dense` is the matrix itself. `of(couplings.tensors())` rebuilds couplings from their tensors.
    """

    batch: int
    spins: int

    @abstractmethod
    def product(self, x: Tensor) -> Tensor:
        """sum over j of J_ij x_j: (B, n, 1) -> (B, n, 1)."""

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
    def between(self, factor: Tensor) -> "Couplings":
        """factor_i J_ij factor_j, with `factor` (B, n, 1)."""

    @abstractmethod
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors that define it."""

    @classmethod
    @abstractmethod
    def of(cls, tensors: Sequence[Tensor]) -> "Couplings":
        """The inverse of `tensors`."""

    @abstractmethod
    def size(self) -> Tensor:
        """A bound of |J_ij|, (B,)."""

    def matvec(self, m: Tensor) -> Tensor:
        """sum over j of J_ij m_j: (B, n) -> (B, n)."""
        checks.floating("m", m, (2,))
        checks.shape("m", m, (self.batch, self.spins))
        return self.product(m.to(self.tensors()[0].dtype)[..., None]).squeeze(-1)

    def add_product(self, base: Tensor, x: Tensor, alpha: float = 1.0) -> Tensor:
        """base + alpha J x, all (B, n, 1)."""
        return torch.add(base, self.product(x), alpha=alpha)

    def norm(self, steps: int = LANCZOS_STEPS) -> Tensor:
        """Largest |eigenvalue|, (B,), a lower bound: |J x| for the unit vector x of `steps` Lanczos steps.

        The start is |J 1|, which permutes with the spins. Gradients pass through the last product only; where x has
        converged this is the gradient of the eigenvalue.
        """
        with torch.no_grad():
            tensors, unit = list(self.tensors()), power_of_two(self.size())  # (B,)
            if steps == LANCZOS_STEPS and (usable(*tensors[:3]) or torch.compiler.is_compiling()):
                x = leading_of(tensors, 1 / unit)[..., None]
            else:
                near = self.scaled(1 / unit)
                x = leading_vector(near.product, first_vector(near.product, tensors[0]), steps)
        return (self.product(x).squeeze(-1) / unit[:, None]).norm(dim=-1) * unit


class DenseCouplings(Couplings):
    """J as a matrix, (B, n, n), with its diagonal set to 0 (NGT Eq. 16 sums over j != i).

    hollow: whether the diagonal is known to be 0 already, and the rest to be finite and symmetric; origin: factors,
    weights and perhaps narrow columns that the matrix was made of, for gradients that need not go through the matrix.
    """

    def __init__(self, matrix: Tensor, hollow: bool = False, origin: tuple[Tensor, ...] | None = None) -> None:
        if not hollow:
            checks.floating("couplings", matrix, (3,))
        if matrix.dim() != 3 or matrix.shape[1] != matrix.shape[2]:
            raise ValueError(f"couplings must have shape (B, n, n); got {tuple(matrix.shape)}")
        if not hollow:
            _check_symmetric(matrix)
        self.matrix = matrix if hollow else make_hollow(matrix)
        self.origin = origin
        self.batch, self.spins = matrix.shape[0], matrix.shape[-1]

    def product(self, x: Tensor) -> Tensor:
        """One matrix product, O(n^2)."""
        return torch.bmm(self.matrix, x)

    def add_product(self, base: Tensor, x: Tensor, alpha: float = 1.0) -> Tensor:
        """In one operation."""
        return torch.baddbmm(base, self.matrix, x, alpha=alpha)

    def squared_matvec(self, x: Tensor) -> Tensor:
        """One matrix product with the elementwise square, O(n^2)."""
        return (self.matrix.square() @ x[..., None]).squeeze(-1)

    def dense(self) -> Tensor:
        """The matrix with zero diagonal."""
        return self.matrix

    def scaled(self, factor: Tensor) -> "DenseCouplings":
        """factor J."""
        return DenseCouplings(self.matrix * factor[:, None, None], hollow=True)

    def between(self, factor: Tensor) -> "DenseCouplings":
        """Rows and columns times the factor."""
        return DenseCouplings(self.matrix * factor * factor.mT, hollow=True)

    def size(self) -> Tensor:
        """The largest |J_ij|."""
        return self.matrix.abs().amax((1, 2))

    def tensors(self) -> tuple[Tensor, ...]:
        """The matrix."""
        return (self.matrix,)

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> "DenseCouplings":
        """From the matrix."""
        return cls(tensors[0], hollow=True)


class LowRankCouplings(Couplings):
    """J = U diag(w) U' off the diagonal, 0 on it.

    factors: U, (B, n, R); weights: w, (B, R); diagonal: of U diag(w) U', (B, n), given where all three were checked
    before. A product with a vector costs O(n R) and never forms the matrix.
    narrow: the first columns of U in 16 bits, (B, n, d), where that is all that there is of them and they have one
    weight; `factors` are then the others, (B, n, R - d), and `given` stands for the first where a gradient is asked for
    (`spinformer.kernels.narrow`).
    """

    def __init__(
        self,
        factors: Tensor,
        weights: Tensor,
        diagonal: Tensor | None = None,
        narrow: Tensor | None = None,
        given: Tensor | None = None,
    ) -> None:
        if diagonal is None:
            checks.floating("factors", factors, (3,))
            checks.floating("weights", weights, (2,))
            checks.shape("weights", weights, (factors.shape[0], factors.shape[2]))
            checks.finite("factors", factors)
            checks.finite("weights", weights)
            dtype = torch.promote_types(factors.dtype, weights.dtype)
            factors, weights = factors.to(dtype), weights.to(dtype)
            diagonal = diagonal_of(factors, weights)
        self.factors, self.weights, self.diagonal, self.narrow, self.given = factors, weights, diagonal, narrow, given
        self.batch, self.spins = factors.shape[:2]

    @staticmethod
    def smaller(
        factors: Tensor,
        weights: Tensor,
        diagonal: Tensor | None = None,
        narrow: Tensor | None = None,
        given: Tensor | None = None,
    ) -> Couplings:
        """These couplings, or the matrix where it is smaller than its factors: no more spins than factors."""
        if factors.shape[1] > weights.shape[1]:
            diagonal = diagonal_of(factors, weights) if diagonal is None else diagonal
            return LowRankCouplings(factors, weights, diagonal, narrow, given)
        origin = (factors, weights) if narrow is None else (factors, weights, narrow)
        return DenseCouplings(hollow_product(factors, weights, narrow), hollow=True, origin=origin)

    def whole(self) -> "LowRankCouplings":
        """The same with all columns among the factors, in float32."""
        if self.narrow is None:
            return self
        first = self.narrow.float() if self.given is None else widened(self.given, self.narrow)
        return LowRankCouplings(torch.cat([first, self.factors], -1), self.weights, self.diagonal)

    def product(self, x: Tensor) -> Tensor:
        """Two thin matrix products, O(n R)."""
        return low_rank_product(self.factors, self.weights, self.diagonal, x, self.narrow)

    def squared_matvec(self, x: Tensor) -> Tensor:
        """Row sums of (U w) (U' diag(x) U) (U w)', O(n R^2)."""
        if self.narrow is not None:
            whole = self.whole()
            return LowRankCouplings(whole.factors, whole.weights, diagonal_of(*whole.tensors()[:2])).squared_matvec(x)
        weighted = self.factors * self.weights[:, None]
        inner = long_product(self.factors.mT, self.factors * x[..., None])  # (B, R, R)
        return ((weighted @ inner) * weighted).sum(-1) - self.diagonal.square() * x

    def dense(self) -> Tensor:
        """The matrix, O(n^2 R)."""
        return hollow_product(self.factors, self.weights, self.narrow)

    def scaled(self, factor: Tensor) -> "LowRankCouplings":
        """factor J."""
        weights, diagonal = self.weights * factor[:, None], self.diagonal * factor[:, None]
        return LowRankCouplings(self.factors, weights, diagonal, self.narrow, self.given)

    def between(self, factor: Tensor) -> "LowRankCouplings":
        """The factors' rows times the factor."""
        whole = self.whole()
        return LowRankCouplings(whole.factors * factor, whole.weights, whole.diagonal * factor.squeeze(-1).square())

    def size(self) -> Tensor:
        """sum over r of |w_r| max_i U_ir^2; where columns are narrow, max_i |d_i| + 2 sum over the others of that."""
        largest = torch.linalg.vector_norm(self.factors, torch.inf, 1)  # max_i |U_ir| in one pass
        if self.narrow is None:
            return (self.weights.abs() * largest.square()).sum(-1)
        others = self.weights[:, self.narrow.shape[2] :].abs() * largest.square()
        return self.diagonal.abs().amax(-1) + 2 * others.sum(-1)

    def tensors(self) -> tuple[Tensor, ...]:
        """Factors, weights, the diagonal that is left out, and the narrow columns where they are known."""
        known = (self.factors, self.weights, self.diagonal)
        return known if self.narrow is None else (*known, self.narrow)

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> "LowRankCouplings":
        """From factors, weights and diagonal."""
        return cls(*tensors)


def as_couplings(couplings: Tensor | Couplings, batch: int, spins: int, dtype: torch.dtype) -> Couplings:
    """Couplings of this shape and type; a tensor is checked to be finite and symmetric."""
    if isinstance(couplings, Couplings):
        if (couplings.batch, couplings.spins) != (batch, spins):
            raise ValueError(
                f"couplings must be for {batch} systems of {spins} spins; got {couplings.batch} of {couplings.spins}"
            )
        tensors = couplings.tensors()
        same = all(tensor.dtype == dtype for tensor in tensors[:3])
        if not same and isinstance(couplings, LowRankCouplings):
            tensors = couplings.whole().tensors()
        return couplings if same else couplings.of([tensor.to(dtype) for tensor in tensors[:3]])
    checks.floating("couplings", couplings, (3,))
    checks.shape("couplings", couplings, (batch, spins, spins))
    return DenseCouplings(couplings.to(dtype))


def _check_symmetric(matrix: Tensor) -> None:
    """Couplings (B, n, n) must be finite, and symmetric up to rounding."""
    checks.finite("couplings", matrix)
    matrix = widen(matrix)
    if not torch.compiler.is_compiling() and matrix.numel():
        difference = float((matrix - matrix.mT).detach().abs().max())
        size = float(matrix.detach().abs().max())
        if difference > 1e-4 * max(size, 1e-30):
            raise ValueError(f"couplings must be symmetric, J_ij = J_ji; they differ by up to {difference:.3g}")


def _register(kind: type[Couplings]) -> None:
    """Let torch.export see the tensors of couplings, as it does those of a tuple."""
    register_pytree_node(
        kind,
        lambda couplings: (list(couplings.tensors()), None),
        lambda tensors, _: kind.of(list(tensors)),
        serialized_type_name=f"spinformer.{kind.__name__}",
    )


_register(DenseCouplings)
_register(LowRankCouplings)
