"""Anderson acceleration of a fixed-point iteration, for each sample of a batch on its own."""

import torch
from torch import Tensor

from spinformer._base.products import long_product
from spinformer.kernels.factors import WINDOW
from spinformer.kernels.spins import mixing_weights
from spinformer.kernels.support import usable

RIDGE = 1e-6


class Anderson:
    """m <- sum_k a_k (m_k + damping r_k),   a = argmin |sum_k a_k r_k|, sum_k a_k = 1,   r_k = F(m_k) - m_k

    over the last WINDOW states. Each sample has its (WINDOW, WINDOW) system for the weights. The ridge, relative to the
    residuals' size, keeps it solvable when they become parallel. A sample whose residual grew takes half its damping,
    one whose residual fell a tenth more, up to the initial value. The result is clipped to [-1, 1], the range of spins.
    """

    def __init__(self, like: Tensor, damping: float) -> None:
        self.states: list[Tensor] = []
        self.residuals: list[Tensor] = []
        self.max_damping, self.tiny = damping, torch.finfo(like.dtype).tiny
        self.damping = like.new_full((like.shape[0], 1, 1), damping)
        self.size = torch.full_like(self.damping, torch.inf)
        self.shrink, self.grow = like.new_full((), 0.5), like.new_full((), 1.1)
        self.ridge = RIDGE * torch.eye(WINDOW, dtype=like.dtype, device=like.device)
        self.ones = like.new_ones(like.shape[0], WINDOW, 1)
        self.fused = usable(like) and not torch.is_grad_enabled() and not torch.compiler.is_compiling()

    def mix(self, m: Tensor, residual: Tensor) -> Tensor:
        """The next state from this one and its residual F(m) - m, all columns, (B, n, 1)."""
        size = torch.linalg.vector_norm(residual.detach(), dim=1, keepdim=True)
        factor = torch.where(size > self.size, self.shrink, self.grow)
        self.damping, self.size = (self.damping * factor).clamp_max(self.max_damping), size
        # Lists and not buffers written in place: where steps are differentiated, they are part of the graph.
        self.states = [*self.states, m][-WINDOW:]
        self.residuals = [*self.residuals, residual][-WINDOW:]
        states, residuals = torch.cat(self.states, -1), torch.cat(self.residuals, -1)  # (B, n, depth)
        gram = long_product(residuals.mT, residuals)
        weights = mixing_weights(gram) if self.fused else self._weights(gram)
        return torch.bmm(torch.addcmul(states, self.damping, residuals), weights).clamp(-1, 1)

    def _weights(self, gram: Tensor) -> Tensor:
        depth = gram.shape[-1]
        scale = gram.amax((1, 2), keepdim=True).clamp_min(self.tiny)  # a Gram matrix is largest on its diagonal
        gram = torch.addcdiv(self.ridge[:depth, :depth], gram, scale)
        weights = torch.linalg.solve_ex(gram, self.ones[:, :depth])[0]
        return weights / weights.sum(1, keepdim=True)
