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
        """One step of all matrices that have a gradient; those of one shape together."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = {}
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes.setdefault(matrix.shape, []).append(matrix)
            for matrices in shapes.values():
                self._move(matrices, group["lr"], group["weight_decay"])

    def _move(self, matrices: Sequence[Tensor], rate: float, decay: float) -> None:
        """One step of some matrices of one shape."""
        ahead = []
        for matrix in matrices:
            gradient, state = matrix.grad, self.state[matrix]
            assert gradient is not None  # `step` takes no others
            if not state:
                state["mean"] = torch.zeros_like(matrix)
            mean = state["mean"].mul_(MOMENTUM).add_(gradient)
            ahead.append(gradient.add(mean, alpha=MOMENTUM))
        rows, columns = matrices[0].shape
        step = rate * max(1.0, rows / columns) ** 0.5
        for matrix, change in zip(matrices, orthogonal(torch.stack(ahead)), strict=True):
            matrix.mul_(1 - rate * decay).sub_(change, alpha=step)


def orthogonal(matrices: Tensor) -> Tensor:
    """About U V' of each matrix U S V', (..., rows, columns)."""
    shape = matrices.shape
    x = matrices.reshape(-1, *shape[-2:])
    tall = shape[-2] > shape[-1]
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-12)
    for _ in range(STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=B, alpha=C), x, beta=A)
    return (x.mT if tall else x).reshape(shape)


def is_matrix(weight: Tensor) -> bool:
    """Whether Muon is for it."""
    return weight.dim() == 2 and min(weight.shape) >= LEAST


def optimizers_of(weights: Sequence[nn.Parameter], rate: float, decay: float, *, muon: bool) -> dict[str, Optimizer]:
    """By name: AdamW of all weights, or Muon of matrices, with MATRIX_RATE times the rate, and AdamW of the others."""
    matrices = [weight for weight in weights if muon and is_matrix(weight)]
    known = set(map(id, matrices))
    others = [weight for weight in weights if id(weight) not in known]
    fused = all(weight.device.type in ("cpu", "cuda") for weight in others)
    found: dict[str, Optimizer] = {"adamw": torch.optim.AdamW(others, lr=rate, weight_decay=decay, fused=fused)}
    if matrices:
        found["muon"] = Muon(matrices, MATRIX_RATE * rate, decay)
    return found
