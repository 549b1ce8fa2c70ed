"""Random coalitions drawn as a size, then its members: for training, for measurement and for KernelSHAP."""

import torch
from torch import Tensor


def uniform_sizes(chance: Tensor, counts: Tensor) -> Tensor:
    """P(|C| = s) = 1 / (n + 1), s from 0 to n: chance (B, K) in [0, 1), players n of each game (B,) -> (B, K)."""
    return (chance * (counts[:, None] + 1)).long()


def kernel_sizes(chance: Tensor, counts: Tensor, most: int) -> Tensor:
    """P(|C| = s) ~ 1 / (s (n - s)), s from 1 to n - 1, as Shapley's kernel has it: chance (B, K), n (B,) -> (B, K).

    most: the largest n. A game of one player has no coalition between none and all, and gets all.
    """
    size = torch.arange(1, max(most, 2), device=chance.device)
    rest = counts[:, None] - size
    share = torch.where(rest > 0, 1 / (size * rest.clamp_min(1)), 0.0)  # (B, most - 1)
    share[:, 0] = share[:, 0].masked_fill(counts == 1, 1.0)
    cumulative = (share / share.sum(-1, keepdim=True)).cumsum(-1)
    chosen = 1 + (chance[..., None] > cumulative[:, None, :-1]).sum(-1)
    return chosen.minimum((counts - 1).clamp_min(1)[:, None])


def members(scores: Tensor, sizes: Tensor, mask: Tensor) -> Tensor:
    """C = the players with the |C| lowest scores

    of those in the mask, (B, n): scores (B, K, n) below 1 and sizes (B, K) -> booleans (B, K, n). All coalitions of a
    size are alike where scores are independent and of one law.
    """
    rank = scores.masked_fill(~mask[:, None], 2.0).argsort(dim=-1, stable=True).argsort(dim=-1)
    return (rank < sizes[..., None]) & mask[:, None]
