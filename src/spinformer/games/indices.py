"""Indices of a game, as distributions over the contexts of a player or a pair: one registry, and two weightings.

With T the coalition around player i (or the pair i, j) and m = n - 1 (or n - 2) the number of others:

    BV, BII   uniform weighting   P(T) = 2^-m                             NGT Eqs. 5, 9
    SV, SII   uniform weighting   P(T) = 1 / ((m + 1) binom(m, |T|))      NGT Eq. 4
    any       gibbs weighting     P(T) ~ exp(v(T) / temperature)          NGT Eqs. 31-36

The last line is what the paper's estimators converge to: NGT Eq. 32 divides by the probability of the proposal, so the
permutation measure of NGT Eq. 34 cancels. Under Gibbs weights all indices of players are equal, and so are those of
pairs.

A new index is one object: `INDICES.register(Index(...))`. Exact values, estimates, the attention layer and the
explanation methods then know it by its name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.binomial import fair_coins, log_binomial
from spinformer._base.registry import Registry

Weighting = Literal["uniform", "gibbs"]

WEIGHTINGS: tuple[Weighting, ...] = ("uniform", "gibbs")


@dataclass(frozen=True)
class Index:
    """sum over T of P(T) Delta v(T),   P(T) ~ exp(log_weight(m, |T|)) under the uniform weighting

    name: how it is asked for, such as "SV". order: 1 values players (Delta_i), 2 values pairs (Delta_ij).
    title: in words, such as "Shapley value".
    log_weight: log P(T) up to a constant that may depend on m, from the tensors m and |T|, 0 <= |T| <= m; float64.
    bias: where P(T) is a mixture of coins with one common bias q, the quantile function of q: a tensor of uniform
    numbers t in (0, 1) -> q(t). Then P(T) = E_t[q^|T| (1 - q)^(m - |T|)], and contexts are drawn from P itself. Without
    it they are drawn with the uniform bias q(t) = t and importance-weighted.
    sizes: P(|T| = s) in closed form, from the tensors m and s, 0 for s > m; without it, it follows from `log_weight`.
    method: name of the explanation method that ranks words by this index, None where there is none.
    """

    name: str
    order: int
    title: str
    log_weight: Callable[[Tensor, Tensor], Tensor]
    bias: Callable[[Tensor], Tensor] | None = None
    sizes: Callable[[Tensor, Tensor], Tensor] | None = None
    method: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name must be a word, such as 'SV'; got {self.name!r}")
        checks.function("log_weight", self.log_weight)
        for part in ("bias", "sizes"):
            if getattr(self, part) is not None:
                checks.function(part, getattr(self, part))
        if self.order not in (1, 2):
            raise ValueError(f"order must be 1 (players) or 2 (pairs); got {self.order!r}")
        if self.order == 2 and self.method is not None:
            raise ValueError(f"a method ranks words, so it needs an index of order 1; got {self.method!r} for pairs")

    @property
    def pairwise(self) -> bool:
        """Whether it values pairs of players."""
        return self.order == 2


def log_size_weight(index: Index, others: Tensor, size: Tensor) -> Tensor:
    """log P(T), up to a constant, for |T| = `size` among `others` players; sizes outside 0..others are clamped."""
    return index.log_weight(others, size.minimum(others).clamp_min(0))


def size_distribution(index: Index, others: Tensor, width: int) -> Tensor:
    """P(|T| = s) under the uniform weighting for s = 0 .. width - 1: (B, width), float64, 0 beyond `others`."""
    size = torch.arange(width, dtype=torch.float64, device=others.device)
    m = others.double()[:, None]
    if index.sizes is not None:
        return index.sizes(m, size)
    return (log_binomial(m, size) + log_size_weight(index, m, size)).softmax(-1)


def check_index(index: str, weighting: str, temperature: float | Tensor) -> Index:
    """The index of this name; the weighting must be known and the temperature positive."""
    known = INDICES[index]
    checks.choice("weighting", weighting, WEIGHTINGS)
    checks.positive("temperature", temperature)
    return known


def _shapley_weight(others: Tensor, size: Tensor) -> Tensor:
    """-log binom(m, s): every size is equally likely, and so is every coalition of a size."""
    return -log_binomial(others, size)


def _shapley_sizes(others: Tensor, size: Tensor) -> Tensor:
    """1 / (m + 1)."""
    return (size <= others) / (others + 1)


def _banzhaf_weight(others: Tensor, size: Tensor) -> Tensor:
    """0: every coalition is equally likely."""
    return torch.zeros_like(size, dtype=torch.float64)


def _banzhaf_sizes(others: Tensor, size: Tensor) -> Tensor:
    """binom(m, s) / 2^m."""
    return fair_coins(others, size)


def _uniform_bias(t: Tensor) -> Tensor:
    """q(t) = t, whose mixture is P(T) = 1 / ((m + 1) binom(m, |T|))."""
    return t


def _fair(t: Tensor) -> Tensor:
    """q(t) = 1/2."""
    return torch.full_like(t, 0.5)


INDICES = Registry[Index]("index")
INDICES.register(Index("SV", 1, "Shapley value", _shapley_weight, _uniform_bias, _shapley_sizes, method="shapley"))
INDICES.register(Index("BV", 1, "Banzhaf value", _banzhaf_weight, _fair, _banzhaf_sizes, method="banzhaf"))
INDICES.register(Index("SII", 2, "Shapley interaction index", _shapley_weight, _uniform_bias, _shapley_sizes))
INDICES.register(Index("BII", 2, "Banzhaf interaction index", _banzhaf_weight, _fair, _banzhaf_sizes))
