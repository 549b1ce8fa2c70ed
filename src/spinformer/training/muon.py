"""Muon, an optimiser for matrices (Jordan et al., 2024). Torch has one since 2.9, in bfloat16; this is in float32."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

MOMENTUM = 0.95
# Muon's rate is this many times AdamW's.
MATRIX_RATE = 10.0
# Coefficients and steps of the iteration of Newton and Schulz: singular values end between 0.7 and 1.2, which will do.
A, B, C = 3.4445, -4.7750, 2.0315
STEPS = 5
# Muon is for matrices of at least so many rows and columns. Smaller ones are mostly those of the last layer.
LEAST = 9


class Muon(Optimizer):
    """m <- mu m + g,   W <- (1 - r decay) W - r sqrt(max(1, rows / columns)) orth(g + mu m)

    for each matrix W with gradient g; r: the rate; mu: MOMENTUM; orth(X): about U V' of X = U S V'. A step is as long
    in all directions, where a gradient is long in few.
    """

    def __init__(self, matrices: Iterable[nn.Parameter], rate: float, decay: float) -> None:
        super().__init__(matrices, {"lr": rate, "weight_decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One step of all matrices that have a gradient."""
        for group in self.param_groups:
            rate, decay = group["lr"], group["weight_decay"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["mean"] = torch.zeros_like(matrix)
                mean = state["mean"].mul_(MOMENTUM).add_(matrix.grad)
                change = orthogonal(matrix.grad.add(mean, alpha=MOMENTUM))
                rows, columns = matrix.shape
                matrix.mul_(1 - rate * decay).sub_(change, alpha=rate * max(1.0, rows / columns) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """About U V' of a matrix U S V', of as many columns and rows."""
    x = matrix.mT if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / x.norm().clamp_min(1e-12)
    for _ in range(STEPS):
        square = x @ x.mT
        x = A * x + (B * square + C * square @ square) @ x
    return x.mT if matrix.shape[0] > matrix.shape[1] else x


def is_matrix(weight: Tensor) -> bool:
    """Whether Muon is for it."""
    return weight.dim() == 2 and min(weight.shape) >= LEAST


def optimizers_of(weights: Sequence[nn.Parameter], rate: float, decay: float, *, muon: bool) -> dict[str, Optimizer]:
    """By name: AdamW of all weights, or Muon of matrices, with MATRIX_RATE times the rate, and AdamW of the others."""
    matrices = [weight for weight in weights if muon and is_matrix(weight)]
    known = set(map(id, matrices))
    others = [weight for weight in weights if id(weight) not in known]
    fused = all(weight.is_cuda for weight in others)
    found: dict[str, Optimizer] = {"adamw": torch.optim.AdamW(others, lr=rate, weight_decay=decay, fused=fused)}
    if matrices:
        found["muon"] = Muon(matrices, MATRIX_RATE * rate, decay)
    return found
