"""Index values of a game from few of its coalitions, by a Gaussian process on coalitions (Bayesian quadrature).

    v ~ N(0, t k),   k(C, C') = CONSTANT + prod over i of (1 + r_i s_i s'_i) / (1 + r_i),   s_i = 1 if i in C, else -1

The coefficients of v in the products of spins, prod over i in S of s_i, are independent, with variances that fall by a
factor r_i for each member of S: interactions of high order are small. Every index is linear in v, so given v of some
coalitions it is normally distributed, with mean and variance in closed form. What is known is met exactly: Shapley
values share out v(N) - v(nothing) whatever else was asked, and all of 2^n coalitions give exact values.

An index is a mean over coins of one bias q (see `spinformer.games.indices`). Under such coins each factor of k has a
simple mean, so with x = 2 q - 1 and T(q, C) = prod over i of (1 + r_i x s_i) / (1 + r_i)

    cov(value of i, v(C)) = E_q[T(q, C) d_i],        d_i = 2 r_i s_i / (1 + r_i x s_i)
    cov(value of ij, v(C)) = E_q[T(q, C) d_i d_j].

E_q runs over the nodes of a Gauss-Legendre rule, exact for Shapley and Banzhaf indices. All sums are in float64.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy
import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.games.indices import INDICES, Index

# Variance of a constant, which is not known beforehand, in units of t.
CONSTANT = 100.0
# Added to the diagonal of k, relative to it, so that rounding does not make it singular.
JITTER = 1e-11
# Mean order of the interactions that make up a game, by which `order_ratios` sets r.
ORDER = 1.5
# r of a player is within these.
RATIOS = (1e-4, 0.95)
# Nodes of q, at most, by the sum of all r. A rule of L nodes is exact for polynomials in x of degree 2 L - 1; beyond,
# the coefficients are less than (sum of r)^(2 L) / (2 L)!, which is rounding.
NODES = ((2.2, 12), (4.0, 16), (float("inf"), 32))


def order_ratios(players: int, order: float = ORDER, weights: Tensor | None = None) -> Tensor:
    """r_i = r w_i with r = order / (n - order): the orders of a game's variance are about binomial with this mean.

    weights: w, (n,), how much more some players matter than others, with mean 1; (n,), float64, below 1.
    """
    checks.positive("order", order)
    ratio = min(order / max(players - order, order), 0.9)
    ratios = torch.full((players,), ratio, dtype=torch.float64) if weights is None else ratio * weights.double()
    return ratios.clamp(*RATIOS)


class Prior:
    """What is known of a game before anything is asked: k of these coalitions, and their covariance with every index.

    coalitions: (..., K, n) booleans; ratios: r, (..., n), where 0 stands for a player who is not there. All is computed
    where the coalitions are.
    """

    def __init__(self, coalitions: Tensor, ratios: Tensor) -> None:
        self.coalitions = coalitions
        self.spins = 2 * coalitions.double() - 1  # (..., K, n)
        self.ratios = ratios.double().to(coalitions.device)
        self.norm = (1 + self.ratios).prod(-1)
        self.known_nodes: dict[tuple[tuple[float, float], ...], list[tuple[Tensor, Tensor]]] = {}

    def exponents(self, spins: Tensor) -> Tensor:
        """sum over i of atanh(r_i) s_i s'_i, of coalitions with these spins, (..., M, n), and ours: (..., M, K)."""
        return (spins * torch.atanh(self.ratios)[..., None, :]) @ self.spins.mT

    @property
    def scale(self) -> Tensor:
        """What e^exponents is to be multiplied with, to be the product in k: (...)."""
        return (1 - self.ratios.square()).prod(-1).sqrt() / self.norm

    def covariance(self, spins: Tensor) -> Tensor:
        """k(C, C') of the coalitions with these spins, (..., M, n), and ours: (..., M, K)."""
        return self.exponents(spins).exp() * self.scale[..., None, None] + CONSTANT

    def cross_covariance(self, index: str, pairs: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """cov(index value, v(C)) / t: (..., n, K), or (..., pairs, K), of all i < j or of these."""
        known, players = _coins(index), self.ratios.shape[-1]
        first, second = torch.triu_indices(players, players, 1) if pairs is None else pairs
        if known.order == 2 and pairs is None:  # a product of matrices for each coalition takes a tenth of the time
            weights, parts = (torch.stack(one, -2) for one in zip(*self._nodes(known), strict=True))  # (..., K, L, n)
            return ((weights.mT[..., None] * parts).mT @ parts)[..., first, second].mT
        total: Tensor | float = 0.0
        for weight, part in self._nodes(known):
            products = part if known.order == 1 else part[..., first] * part[..., second]
            total = total + weight[..., None] * products
        assert isinstance(total, Tensor)
        return total.mT

    def _nodes(self, index: Index) -> list[tuple[Tensor, Tensor]]:
        """T(q, C) times the weight of the node, (..., K), and d, (..., K, n), for every node q, of SV and SII alike."""
        rule = _rule(index, self.ratios)
        if rule not in self.known_nodes:
            signed = self.ratios[..., None, :] * self.spins
            nodes = []
            for x, weight in rule:
                factor = 1 + x * signed
                nodes.append((weight / self.norm[..., None] * factor.prod(-1), 2 * signed / factor))
            self.known_nodes[rule] = nodes
        return self.known_nodes[rule]


class Quadrature(Prior):
    """What the values of some coalitions tell about every index value of a game.

    The coalitions of a set are all different. The same object serves any number B of games for each set.
    """

    def __init__(self, coalitions: Tensor, ratios: Tensor) -> None:
        super().__init__(coalitions, ratios)
        matrix = self.covariance(self.spins)
        matrix.diagonal(dim1=-2, dim2=-1).mul_(1 + JITTER)
        self.factor = torch.linalg.cholesky(matrix)

    def coefficients(self, values: Tensor) -> Tensor:
        """alpha = k^-1 v, for values (..., B, K): (..., B, K)."""
        return torch.cholesky_solve(values.double().to(self.factor.device).mT, self.factor).mT

    def amplitude(self, values: Tensor, coefficients: Tensor) -> Tensor:
        """v' k^-1 v, (..., B): t is about this over K."""
        return (values.double().to(coefficients.device) * coefficients).sum(-1)

    def log_determinant(self) -> Tensor:
        """log det k, (...)."""
        return 2 * self.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def values(self, index: str, coefficients: Tensor) -> Tensor:
        """The posterior mean of an index, (..., B, n) or (..., B, n, n), from `coefficients`."""
        known = _coins(index)
        total: Tensor | float = 0.0
        for weight, part in self._nodes(known):
            moved = coefficients * weight[..., None, :]  # (..., B, K)
            if known.order == 1:
                total = total + moved @ part
            else:
                total = total + (part.mT[..., None, :, :] * moved[..., None, :]) @ part[..., None, :, :]
        assert isinstance(total, Tensor)
        if known.order == 2:
            total.diagonal(dim1=-2, dim2=-1).zero_()
        return total

    def predict(self, coalitions: Tensor, coefficients: Tensor) -> Tensor:
        """The posterior mean of v of other coalitions, (..., M, n): (..., B, M)."""
        return coefficients @ self.covariance(2 * coalitions.double() - 1).mT

    def deviations(self, index: str, pairs: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """The posterior standard deviation of an index for t = 1: (..., n) or (..., n, n), 0 on the diagonal.

        pairs: those of these pairs alone, NaN elsewhere.
        """
        if _coins(index).order == 1:
            return self.variances(index).sqrt()
        deviation, players = self.variances(index, pairs).sqrt(), self.ratios.shape[-1]
        if pairs is None:
            return symmetric(deviation, players)
        matrix = deviation.new_full((*deviation.shape[:-1], players, players), torch.nan)
        matrix.diagonal(dim1=-2, dim2=-1).zero_()
        matrix[..., pairs[0], pairs[1]] = matrix[..., pairs[1], pairs[0]] = deviation
        return matrix

    def variances(self, index: str, pairs: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """The posterior variance of an index for t = 1: (..., n), or (..., pairs), of all i < j or of these."""
        known = self.reduction(index, self.cross_covariance(index, pairs))
        return (index_variances(index, self.ratios, pairs) - known).clamp_min(0)

    def reduction(self, index: str, cross: Tensor) -> Tensor:
        """c' k^-1 c: what an index's variance loses by the coalitions, from its covariances c, (..., n or pairs, K)."""
        return torch.linalg.solve_triangular(self.factor, cross.mT, upper=False).square().sum(-2)


def share_out(shapley: Tensor, total: Tensor) -> Tensor:
    """phi_i + (total - sum over j of phi_j) / n: Shapley values, (..., n), that add up to `total`, (...)

    They do so by themselves, up to the jitter; where k is nearly singular this is more than rounding.
    """
    return shapley + ((total - shapley.sum(-1)) / shapley.shape[-1])[..., None]


def index_variances(index: str, ratios: Tensor, pairs: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """var(index value) / t before anything is asked: (..., n), or (..., pairs), of all i < j or of these.

    E over q and q' of prod over j of (1 + r_j x x') / (1 + r_j) times 4 r_i / (1 + r_i x x') for each member i.
    """
    known, players = _coins(index), ratios.shape[-1]
    rule = _rule(known, ratios)
    x, weight = (torch.tensor(column, dtype=torch.float64, device=ratios.device) for column in zip(*rule, strict=True))
    factor = 1 + ratios[..., None] * (x[:, None] * x).flatten()  # (..., n, L^2)
    common = factor.prod(-2) / (1 + ratios).prod(-1)[..., None] * (weight[:, None] * weight).flatten()
    own = 4 * ratios[..., None] / factor
    if known.order == 1:
        return (common[..., None, :] * own).sum(-1)
    first, second = torch.triu_indices(players, players, 1) if pairs is None else pairs
    return ((own * common[..., None, :]) @ own.mT)[..., first, second]


def _coins(index: str) -> Index:
    known = INDICES[index]
    if known.bias is None:
        raise ValueError(f"only an index that is a mean over coins has a closed form; {index!r} is none")
    return known


def _rule(index: Index, ratios: Tensor) -> tuple[tuple[float, float], ...]:
    """Nodes x = 2 q - 1 with their weights, for players of these r, (..., n); nodes that coincide are one."""
    assert index.bias is not None
    total = float(ratios.detach().sum(-1).max())
    nodes = next(count for most, count in NODES if total <= most)
    return _biased(index.bias, min(ratios.shape[-1] // 2 + 1, nodes))


@lru_cache(maxsize=256)
def _biased(bias: Callable[[Tensor], Tensor], count: int) -> tuple[tuple[float, float], ...]:
    """Gauss-Legendre nodes of t on 0 .. 1 as 2 q(t) - 1, with their weights."""
    nodes, weights = numpy.polynomial.legendre.leggauss(count)
    merged: dict[float, float] = {}
    for q, part in zip(bias(torch.tensor((nodes + 1) / 2)).tolist(), (weights / 2).tolist(), strict=True):
        merged[2 * q - 1] = merged.get(2 * q - 1, 0.0) + part
    return tuple(merged.items())


def symmetric(pairs: Tensor, players: int) -> Tensor:
    """(..., pairs i < j) -> (..., n, n), symmetric."""
    first, second = torch.triu_indices(players, players, 1)
    matrix = pairs.new_zeros(*pairs.shape[:-1], players, players)
    matrix[..., first, second] = pairs
    return matrix + matrix.mT
