"""Random coalitions, drawn as a size and then its members: for training, measurement and KernelSHAP."""

import torch
from torch import Tensor


def uniform_sizes(uniform: Tensor, counts: Tensor) -> Tensor:
    """P(|C| = s) = 1 / (n + 1), s from 0 to n

    uniform: random numbers (B, K) in [0, 1); counts: the players n of each game, (B,); sizes (B, K).
    """
    return (uniform * (counts[:, None] + 1)).long()


def kernel_sizes(uniform: Tensor, counts: Tensor, max_count: int) -> Tensor:
    """P(|C| = s) ~ 1 / (s (n - s)), s from 1 to n - 1: the Shapley kernel

    uniform: random numbers (B, K) in [0, 1); counts: n of each game, (B,); max_count: the largest n; sizes (B, K). A
    game of one player has no size between 0 and n, and gets n.
    """
    size = torch.arange(1, max(max_count, 2), device=uniform.device)
    rest = counts[:, None] - size
    weight = torch.where(rest > 0, 1 / (size * rest.clamp_min(1)), 0.0)  # (B, max_count - 1)
    weight[:, 0] = weight[:, 0].masked_fill(counts == 1, 1.0)
    cumulative = (weight / weight.sum(-1, keepdim=True)).cumsum(-1)
    chosen = 1 + (uniform[..., None] > cumulative[:, None, :-1]).sum(-1)
    return chosen.minimum((counts - 1).clamp_min(1)[:, None])


def members(scores: Tensor, sizes: Tensor, mask: Tensor) -> Tensor:
    """C = the |C| players of lowest score among those in the mask, (B, n)

    scores: (B, K, n), below 1; sizes: (B, K); coalitions (B, K, n). If scores are independent and identically
    distributed, all coalitions of a size are equally likely.
    """
    rank = scores.masked_fill(~mask[:, None], 2.0).argsort(dim=-1, stable=True).argsort(dim=-1)
    return (rank < sizes[..., None]) & mask[:, None]


def draw_coalitions(mask: Tensor, count: int, *, seed: int) -> Tensor:
    """(B, count, W) coalitions of the words in `mask`, (B, W): the size uniform from 0 to all words, then the members.

    The same on every device.
    """
    generator = torch.Generator().manual_seed(seed)
    present = mask.cpu()
    rows, width = present.shape
    sizes = uniform_sizes(torch.rand(rows, count, generator=generator), present.sum(-1))
    scores = torch.rand(rows, count, width, generator=generator)
    return members(scores, sizes, present).to(mask.device)
