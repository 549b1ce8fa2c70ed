"""Algorithm 1 of the NeuroGame paper to the letter, with its loops: to read, and to test against.

One sequence, one token and one coalition at a time. X: (n, d), token embeddings as rows; V = X W_v'; gamma:
temperature; K: samples; T: mean-field steps; epsilon: tolerance. Symbols and line numbers are the paper's.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Algorithm1(NamedTuple):
    """z: (d,), the output; alpha: (n,); fields: (n,), J_i; couplings: (n, n), J_ij."""

    z: Tensor
    alpha: Tensor
    fields: Tensor
    couplings: Tensor


def norm_of_sum(V: Tensor, members: list[int]) -> Tensor:
    """|sum of V_j over the members|, 0 for none            NGT Eq. 2"""
    return V[members].sum(0).norm() if members else V.new_zeros(())


def weighted_average(log_weights: list[Tensor], terms: list[Tensor]) -> Tensor:
    """sum of w_k x_k with w_k = exp(log_weight_k) normalised            NGT Eq. 32"""
    return (torch.stack(log_weights).softmax(0) * torch.stack(terms)).sum()


def shapley_value(V: Tensor, i: int, K: int, gamma: float, generator: torch.Generator) -> Tensor:
    """Lines 13 to 21: the estimate of phi_i               NGT Eq. 33"""
    n = len(V)
    others = [j for j in range(n) if j != i]
    W, M = [], []
    for _ in range(K):
        pi = [others[k] for k in torch.randperm(n - 1, generator=generator)]
        r = int(torch.randint(0, n, (), generator=generator))
        P = pi[:r]
        log_p = math.lgamma(r + 1) + math.lgamma(n - r) - math.lgamma(n)  # log of s! (n-1-s)! / (n-1)!, NGT Eq. 34
        v_p = norm_of_sum(V, P)
        M.append(norm_of_sum(V, [*P, i]) - v_p)  # NGT Eq. 1
        W.append(v_p / gamma - log_p)
    return weighted_average(W, M)


def banzhaf_value(V: Tensor, i: int, K: int, gamma: float, generator: torch.Generator) -> Tensor:
    """Lines 25 to 31: the estimate of beta_i              NGT Eq. 35"""
    W, M = [], []
    for _ in range(K):
        C = _bernoulli([j for j in range(len(V)) if j != i], generator)
        v_c = norm_of_sum(V, C)
        M.append(norm_of_sum(V, [*C, i]) - v_c)  # NGT Eq. 1
        W.append(v_c / gamma)
    return weighted_average(W, M)


def interaction(V: Tensor, i: int, j: int, K: int, gamma: float, generator: torch.Generator) -> Tensor:
    """Lines 36 to 45: the estimate of J_ij                NGT Eq. 36"""
    W, D = [], []
    for _ in range(K):
        C = _bernoulli([m for m in range(len(V)) if m not in (i, j)], generator)
        v_c, v_i = norm_of_sum(V, C), norm_of_sum(V, [*C, i])
        v_j, v_ij = norm_of_sum(V, [*C, j]), norm_of_sum(V, [*C, i, j])
        D.append(v_ij - v_i - v_j + v_c)  # NGT Eq. 8
        W.append(v_c / gamma)
    return weighted_average(W, D)


def mean_field(fields: Tensor, couplings: Tensor, gamma: float, T: int, epsilon: float) -> Tensor:
    """Lines 56 to 65: the expected spins."""
    n = len(fields)
    s = torch.zeros(n, dtype=fields.dtype)
    for _ in range(T):
        s_old = s.clone()
        for i in range(n):
            h = fields[i] + sum(couplings[i, j] * s_old[j] for j in range(n) if j != i)  # NGT Eq. 19
            s[i] = torch.tanh(h / gamma)  # NGT Eq. 25
        if (s - s_old).abs().max() < epsilon:
            break
    return s


def algorithm1(
    X: Tensor,
    W_v: Tensor,
    w: Tensor,
    b: Tensor,
    *,
    gamma: float = 0.25,
    K: int = 15,
    T: int = 25,
    epsilon: float = 1e-4,
    generator: torch.Generator,
) -> Algorithm1:
    """Algorithm 1 for one sequence."""
    n = len(X)
    V = X @ W_v.T
    gate = torch.sigmoid(X @ w + b)  # NGT Eq. 7
    phi = torch.stack([shapley_value(V, i, K, gamma, generator) for i in range(n)])
    beta = torch.stack([banzhaf_value(V, i, K, gamma, generator) for i in range(n)])
    couplings = torch.zeros(n, n, dtype=V.dtype)
    for i in range(n):
        for j in range(i + 1, n):
            couplings[i, j] = couplings[j, i] = interaction(V, i, j, K, gamma, generator)
    fields = gate * phi / phi.abs().sum() + (1 - gate) * beta / beta.abs().sum()  # NGT Eq. 6
    alpha = (1 + mean_field(fields, couplings, gamma, T, epsilon)) / 2  # NGT Eq. 11
    return Algorithm1(alpha @ V, alpha, fields, couplings)  # z: NGT Eq. 26


def _bernoulli(players: list[int], generator: torch.Generator) -> list[int]:
    coins = torch.rand(len(players), generator=generator) < 0.5
    return [player for player, coin in zip(players, coins.tolist(), strict=True) if coin]
