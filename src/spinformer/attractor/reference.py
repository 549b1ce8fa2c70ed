"""Plain versions of the fast functions, on dense couplings J (N, N, d, d): written to be read, differentiable.

Tests compare values and gradients with these, and benchmarks compare speed.
"""

import torch
from torch import Tensor


def scores(J: Tensor, x: Tensor, strength: float = 1.0) -> Tensor:
    """λ x_i J_ij x_j: (B, N, N), minus infinity where i = j."""
    s = strength * torch.einsum("bia,ijac,bjc->bij", x, J, x)
    return s.masked_fill(torch.eye(x.shape[1], dtype=torch.bool, device=x.device), float("-inf"))


def local_energy(J: Tensor, x: Tensor, strength: float = 1.0, clamp: float | None = None) -> Tensor:
    """e_i = -log Σ_{j≠i} exp(λ x_i J_ij x_j): (B, N)                    ATT Eq. 4"""
    s = scores(J, x, strength)
    return -torch.logsumexp(s if clamp is None else s.clamp(max=clamp), dim=-1)


def energy(J: Tensor, x: Tensor, strength: float = 1.0, clamp: float | None = None) -> Tensor:
    """E = Σ_i e_i: (B,)                                                 ATT Eq. 6"""
    return local_energy(J, x, strength, clamp).sum(-1)


def step(J: Tensor, x: Tensor, strength: float = 1.0, inertia: float = 1.0) -> Tensor:
    """x_i' = λ Σ_j α_ij J_ij x_j + γ x_i: (B, N, d)                      ATT Eq. 1"""
    alpha = torch.softmax(scores(J, x, strength), dim=-1)  # ATT Eq. 2
    return strength * torch.einsum("bij,ijac,bjc->bia", alpha, J, x) + inertia * x


def field_loss(J: Tensor, x: Tensor, visible: Tensor, strength: float = 1.0) -> Tensor:
    """Σ_i ½|x_i - h_i|², h_i = λ/(N-1) Σ_{j≠i} J_ij visible_j: (B,)."""
    other = 1 - torch.eye(x.shape[1], device=x.device, dtype=x.dtype)
    field = strength / (x.shape[1] - 1) * torch.einsum("ij,ijac,bjc->bia", other, J, visible)
    return 0.5 * (x - field).square().sum((-1, -2))
