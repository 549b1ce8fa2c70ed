"""Steps of the mean-field equations, each sample on its own: plain, and differentiable one by one."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from spinformer._base.precision import full_precision
from spinformer._base.stopping import all_done
from spinformer.ising.anderson import Anderson
from spinformer.ising.implicit import KINDS
from spinformer.ising.model import Ising

Options = tuple[int, float, float, str, str]  # max_steps, damping, tol, correction, solver


@dataclass(frozen=True)
class MeanField:
    """magnetization: m, (B, n); residual: max_i |F(m)_i - m_i| of the undamped map F, (B,); converged: residual <= tol,
    (B,); steps: updates taken, (B,). With `return_trajectory`, for 0, 1, 2 ... steps: trajectory: m, (B, steps + 1, n);
    residuals: the residual, (B, steps + 1).
    """

    magnetization: Tensor
    residual: Tensor
    converged: Tensor
    steps: Tensor
    trajectory: Tensor | None = None
    residuals: Tensor | None = None


@full_precision
def through_plain_steps(
    tensors: list[Tensor], mask: Tensor | None, kind: str, options: Options, gradient: Tensor
) -> tuple[Tensor, ...]:
    """Gradients through the steps, of those that need one among start, fields, temperature and couplings' tensors.

    All of them get one where none is marked.
    """
    if not any(tensor.requires_grad for tensor in tensors):
        tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    start, fields, temperature, *couplings = tensors
    with torch.enable_grad():
        ising = Ising(fields, KINDS[kind].of(couplings), temperature, mask, trusted=True)
        m = iterate(ising, start, options).magnetization
    needed = [tensor for tensor in tensors if tensor.requires_grad]
    return torch.autograd.grad(m, needed, gradient, materialize_grads=True)


def iterate(
    ising: Ising, m: Tensor, options: Options, return_trajectory: bool = False, least_steps: int = 0
) -> MeanField:
    """The state after the steps that `options` ask for, and at least so many."""
    max_steps, damping, tol, correction, solver = options
    update = ising.mapping(correction)
    m = m[..., None]  # columns, (B, n, 1), and one number a sample, (B, 1, 1), as long as the loop runs
    step = _stepper(ising, m, damping, solver)
    gap = update(m) - m
    residual = _largest(gap)
    path, residuals = [m], [residual]
    steps = torch.zeros_like(residual, dtype=torch.long)
    every = 1 if return_trajectory or solver == "sequential" else None  # a needless sweep costs more than a check
    for count in range(max_steps):
        active = (residual > tol) | (count < least_steps)
        if count >= least_steps and all_done(active, count, every):
            break
        m = torch.where(active, step(m, gap), m)
        steps = steps + active
        gap = update(m) - m
        residual = _largest(gap)
        if return_trajectory:
            path.append(m)
            residuals.append(residual)
    trajectory = torch.cat(path, -1).mT if return_trajectory else None  # (B, steps + 1, n)
    history = torch.cat(residuals, -1).squeeze(1) if return_trajectory else None  # (B, steps + 1)
    residual = residual.flatten()
    return MeanField(m.squeeze(-1), residual, residual <= tol, steps.flatten(), trajectory, history)


def _largest(gap: Tensor) -> Tensor:
    """max_i |F(m)_i - m_i|, (B, 1, 1)."""
    return torch.linalg.vector_norm(gap.detach(), torch.inf, dim=1, keepdim=True)


def _stepper(ising: Ising, like: Tensor, damping: float, solver: str) -> Callable[[Tensor, Tensor], Tensor]:
    """A function of the state m and of F(m) - m that gives the next state, all columns."""
    if solver == "damped":
        return lambda m, gap: torch.add(m, gap, alpha=damping)
    if solver == "anderson":
        return Anderson(like, damping).mix
    matrix = ising.couplings.dense()

    def sweep(m: Tensor, gap: Tensor) -> Tensor:
        spins = list(m.squeeze(-1).unbind(-1))
        for i in range(ising.spins):
            field = ising.fields[:, i] + (matrix[:, i] * torch.stack(spins, -1)).sum(-1)
            spin = torch.tanh(field / ising.temperature)
            spins[i] = spin if ising.mask is None else spin * ising.mask[:, i]  # padding acts on no one
        return torch.stack(spins, -1)[..., None]

    return sweep
