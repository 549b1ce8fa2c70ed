"""Anderson acceleration of a fixed-point iteration, for each sample of a batch on its own."""

import torch
from torch import Tensor

WINDOW = 5
RIDGE = 1e-6


class Anderson:
    """m <- sum_k a_k (m_k + damping r_k),   a = argmin |sum_k a_k r_k|, sum_k a_k = 1,   r_k = F(m_k) - m_k

    over the last WINDOW states. The weights come from one (WINDOW, WINDOW) system a sample; the ridge, relative to the
    residuals' size, keeps it solvable when they become parallel. A sample whose residual grew takes half its damping,
    one whose residual fell a tenth more, up to where it began. The result is clipped to [-1, 1], where spins live.
    """

    def __init__(self, like: Tensor, damping: float) -> None:
        self.states = like.new_zeros(like.shape[0], WINDOW, like.shape[1])
        self.residuals = torch.zeros_like(self.states)
        self.most = damping
        self.damping = like.new_full((like.shape[0],), damping)
        self.size = like.new_full((like.shape[0],), torch.inf)
        self.filled = 0

    def mix(self, m: Tensor, target: Tensor) -> Tensor:
        """The next state from this one and its image F(m), both (B, n)."""
        residual = target - m
        size = residual.detach().square().sum(-1)
        self.damping = torch.where(size > self.size, self.damping / 2, (self.damping * 1.1).clamp_max(self.most))
        self.size = size
        slot = self.filled % WINDOW
        self.states = torch.cat([self.states[:, :slot], m[:, None], self.states[:, slot + 1 :]], 1)
        self.residuals = torch.cat([self.residuals[:, :slot], residual[:, None], self.residuals[:, slot + 1 :]], 1)
        self.filled += 1
        depth = min(self.filled, WINDOW)
        states, residuals = self.states[:, :depth], self.residuals[:, :depth]
        gram = residuals @ residuals.mT  # (B, depth, depth)
        scale = gram.diagonal(dim1=-2, dim2=-1).amax(-1)[:, None, None].clamp_min(torch.finfo(m.dtype).tiny)
        gram = gram / scale + RIDGE * torch.eye(depth, dtype=m.dtype, device=m.device)
        weights = torch.linalg.solve(gram, torch.ones_like(gram[..., :1])).squeeze(-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mixed = (weights[..., None] * (states + self.damping[:, None, None] * residuals)).sum(1)
        return mixed.clamp(-1, 1)
