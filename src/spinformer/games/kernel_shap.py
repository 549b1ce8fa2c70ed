"""KernelSHAP: Shapley values of any game by weighted least squares over sampled coalitions."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer.games.coalitions import kernel_sizes, members

BITS = 62  # of a coalition in one integer
# Draws for each pair of coalitions that may be evaluated, at most: repeated ones are made up for by further draws.
REPEATS = 16


class KernelSample(NamedTuple):
    """coalitions: (K, n) booleans, neither empty nor full; weight: (K,), how much each counts."""

    coalitions: Tensor
    weight: Tensor


def least_squares(coalitions: Tensor, weight: Tensor, values: Tensor, total: Tensor) -> Tensor:
    """argmin over phi of sum over C of weight(C) (values(C) - sum over C of phi_i)^2 with sum of phi_i = total: (n,)

    values: v(C) - v(empty); total: v(N) - v(empty). In float64, by the deviation from equal shares; where the minimum
    is not unique, the one closest to equal shares. Lundberg and Lee (2017).
    """
    players = coalitions.shape[1]
    member = coalitions.double()
    share = total.double() / players
    residual = values.double() - share * member.sum(-1)
    member = member - member.mean(-1, keepdim=True)  # deviations sum to 0
    moment = member.T @ (weight[:, None] * member)
    return share + torch.linalg.pinv(moment, rtol=1e-10, hermitian=True) @ (member.T @ (weight * residual))


def every_coalition(players: int) -> KernelSample:
    """All coalitions but the empty and the full one, with w(C) = (n - 1) / (binom(n, |C|) |C| (n - |C|))."""
    coalitions = (torch.arange(1, 2**players - 1)[:, None] >> torch.arange(players) & 1).bool()
    size = coalitions.sum(-1).double()
    log_binomial = torch.lgamma(torch.tensor(players + 1.0)) - torch.lgamma(size + 1) - torch.lgamma(players - size + 1)
    return KernelSample(coalitions, (players - 1) / (log_binomial.exp() * size * (players - size)))


def kernel_coalitions(uniform: Tensor, counts: Tensor) -> Tensor:
    """Coalitions drawn by w: P(|C| = s) ~ 1 / (s (n - s)), all coalitions of one size alike.

    uniform: (B, K, columns + 1) numbers in (0, 1), of which the first chooses the size; counts: (B,), the players of
    each game -> (B, K, columns). A game of one player has no coalition between none and all, and gets all.
    """
    columns = uniform.shape[-1] - 1
    mask = torch.arange(columns, device=uniform.device) < counts[:, None]
    return members(uniform[..., 1:], kernel_sizes(uniform[..., 0], counts, columns), mask)


def sample_kernel(uniforms: Callable[[int], Tensor], budget: int) -> KernelSample:
    """At most `budget` different coalitions, each with its complement (Covert and Lee 2021); repeats count again.

    uniforms(draws): (draws, n + 1) numbers in (0, 1), one row per draw; more rows begin with the same numbers.
    """
    pairs = budget // 2
    draws, max_draws = 2 * pairs, REPEATS * pairs
    distinct, index, first = _distinct_draws(uniforms(draws))
    while len(distinct) <= pairs and draws < max_draws:
        draws = min(2 * draws, max_draws)
        distinct, index, first = _distinct_draws(uniforms(draws))
    counts = index[first.cumsum(0) <= pairs].bincount(minlength=len(distinct))  # as long as the budget lasts
    used = counts > 0
    half, weight = distinct[used], counts[used].double()
    return KernelSample(torch.cat([half, ~half]), torch.cat([weight, weight]))


def distinct_rows(coalitions: Tensor) -> tuple[Tensor, Tensor]:
    """The different rows of (K, n) booleans in the order of unique(dim=0), and the index of each row among them, (K,).

    Many times faster than unique(dim=0): rows are compared as integers of up to 62 bits, the first column highest.
    """
    blocks = coalitions.split(BITS, 1)
    codes = torch.stack([(block.long() << _shifts(block.shape[1])).sum(1) for block in blocks], 1)
    if len(blocks) > 1:
        distinct, index = codes.unique(dim=0, return_inverse=True)
    else:
        distinct, index = codes[:, 0].unique(return_inverse=True)
        distinct = distinct[:, None]
    bits = [codes[:, None] >> _shifts(block.shape[1]) & 1 for codes, block in zip(distinct.T, blocks, strict=True)]
    return torch.cat(bits, 1).bool(), index


def _distinct_draws(uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The different coalitions among the draws, which of them each draw is, and whether it is its first."""
    drawn = kernel_coalitions(uniform[None], torch.tensor([uniform.shape[1] - 1]))[0]
    drawn = drawn ^ ~drawn[:, :1]  # of a coalition and its complement, the one with the first player
    distinct, index = distinct_rows(drawn)
    draws = torch.arange(len(uniform))
    earliest = torch.full((len(distinct),), len(uniform)).scatter_reduce(0, index, draws, "amin")
    return distinct, index, earliest[index] == draws


def _shifts(width: int) -> Tensor:
    return torch.arange(width - 1, -1, -1)
