"""A Gaussian process on coalitions that were asked in pairs, C and N - C: two systems of half the size.

    v(C) + v(N - C)  and  v(C) - v(N - C)   are independent,   with covariances 2 (k(C, C') +- k(C, N - C'))

They hold the interactions of even order and those of odd order. An index whose coins do not favour coming over staying
away, as Shapley's and Banzhaf's, needs one of the two: values of players the differences, values of pairs the sums. All
is as in `spinformer.games.gaussian.Quadrature` on the same coalitions, for a quarter of the price.
"""

import torch
from torch import Tensor

from spinformer.games.gaussian import CONSTANT, JITTER, Prior, Quadrature
from spinformer.games.indices import INDICES


class PairedQuadrature(Quadrature):
    """What the values of coalitions C, N - C in turn tell about index values. `spins`: of the first of each pair.

    Players of ratio 0, who are not there, may stay away from both.
    """

    def __init__(self, coalitions: Tensor, ratios: Tensor) -> None:
        Prior.__init__(self, coalitions[..., ::2, :], ratios)
        same = self.exponents(self.spins).exp()  # k of C and C', but for scale and constant
        other = same.reciprocal()  # of C and N - C'
        matrices = torch.stack([same + other, same - other], -3) * self.scale[..., None, None, None]
        matrices[..., 0, :, :] += 2 * CONSTANT
        matrices.diagonal(dim1=-2, dim2=-1).add_(JITTER * (1 + CONSTANT))
        self.factor = torch.linalg.cholesky(matrices)  # (..., 2, K / 2, K / 2)

    def coefficients(self, values: Tensor) -> Tensor:
        """Of sums and of differences, for values (..., B, K): (..., 2, B, K / 2)."""
        return torch.cholesky_solve(self._parts(values).mT, self.factor).mT

    def amplitude(self, values: Tensor, coefficients: Tensor) -> Tensor:
        """v' k^-1 v, (..., B)."""
        return (self._parts(values) * coefficients).sum((-3, -1)) / 2

    def log_determinant(self) -> Tensor:
        """log det k, (...)."""
        return super().log_determinant().sum(-1)

    def values(self, index: str, coefficients: Tensor) -> Tensor:
        """The posterior mean of an index, (..., B, n) or (..., B, n, n), from `coefficients`."""
        return super().values(index, coefficients[..., _part(index), :, :])

    def predict(self, coalitions: Tensor, coefficients: Tensor) -> Tensor:
        """The posterior mean of v of other coalitions, (..., M, n): (..., B, M)."""
        exponents = self.exponents(2 * coalitions.double() - 1).mT
        scale = self.scale[..., None, None]
        even, odd = coefficients.unbind(-3)
        return even @ (exponents.cosh() * scale + CONSTANT) + odd @ (exponents.sinh() * scale)

    def reduction(self, index: str, cross: Tensor) -> Tensor:
        """c' k^-1 c, from the covariances c with the first of each pair, (..., n or pairs, K / 2)."""
        factor = self.factor[..., _part(index), :, :]
        return 2 * torch.linalg.solve_triangular(factor, cross.mT, upper=False).square().sum(-2)

    def _parts(self, values: Tensor) -> Tensor:
        """v(C) + v(N - C) and v(C) - v(N - C), (..., 2, B, K / 2)."""
        values = values.double().to(self.factor.device)
        first, second = values[..., ::2], values[..., 1::2]
        return torch.stack([first + second, first - second], -3)


def _part(index: str) -> int:
    """Which of the two tells about an index: 0 for sums, 1 for differences."""
    return 0 if INDICES[index].pairwise else 1
