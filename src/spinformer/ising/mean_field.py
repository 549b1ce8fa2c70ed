"""Mean-field equations of an Ising model, solved sample by sample."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer.ising.anderson import Anderson
from spinformer.ising.implicit import attach
from spinformer.ising.model import Ising
from spinformer.ising.stopping import all_done

Correction = Literal["naive", "tap"]
Backward = Literal["implicit", "unrolled"]
Solver = Literal["damped", "anderson", "sequential"]


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
def mean_field(
    ising: Ising,
    *,
    max_steps: int = 25,
    damping: float = 0.7,
    tol: float = 1e-4,
    init: Tensor | None = None,
    correction: Correction = "naive",
    backward: Backward = "implicit",
    solver: Solver = "damped",
    return_trajectory: bool = False,
) -> MeanField:
    """m_i = F(m)_i = tanh((h_i + sum_j J_ij m_j) / temperature)                     NGT Eq. 16

    solver "damped": m <- damping F(m) + (1 - damping) m for all spins at once, as in the paper (damping 1 is
    NGT Eq. 25). "anderson": the same with Anderson's extrapolation over the last steps. "sequential": one spin after
    the other, a step being one sweep over the dense couplings. Each of its updates lowers the free energy, so it
    converges (naive equations, symmetric couplings) where parallel updates oscillate, as they do with strong
    antagonistic couplings.
    correction "tap" subtracts the Onsager term m_i sum_j J_ij^2 (1 - m_j^2) / temperature from the field.

    A sample stops when its residual is at most `tol`, whatever the others do. All stop after `max_steps`; `converged`
    is false for those that did not get there. Under torch.compile the number of steps is fixed, and samples that are
    done stay as they are.

    backward "implicit": gradients by the implicit function theorem, in memory that does not grow with the steps,
    exact at a fixed point; "unrolled": through every step taken.
    """
    checks.choice("correction", correction, ("naive", "tap"))
    checks.choice("backward", backward, ("implicit", "unrolled"))
    checks.choice("solver", solver, ("damped", "anderson", "sequential"))
    if solver == "sequential" and correction != "naive":
        raise ValueError("the sequential solver is for the naive equations; take another solver for the TAP ones")
    checks.at_least("max_steps", max_steps, 1)
    checks.positive("tol", tol)
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be in (0, 1] (1 takes the full step); got {damping}")
    start = torch.zeros_like(ising.fields)
    if init is not None:
        checks.floating("init", init, (2,))
        checks.shape("init", init, tuple(start.shape))
        start = init.to(start)
        if ising.mask is not None:
            start = start * ising.mask
    options = (max_steps, damping, tol, correction, solver, return_trajectory)
    if backward == "unrolled" or not torch.is_grad_enabled():
        return _iterate(ising, start, *options)
    with torch.no_grad():
        solved = _iterate(ising.detached(), start, *options)
    magnetization = attach(ising, solved.magnetization, correction)
    return MeanField(
        magnetization, solved.residual, solved.converged, solved.steps, solved.trajectory, solved.residuals
    )


def _iterate(
    ising: Ising,
    m: Tensor,
    max_steps: int,
    damping: float,
    tol: float,
    correction: str,
    solver: str,
    return_trajectory: bool,
) -> MeanField:
    update = ising.mapping(correction)
    m = m[..., None]  # columns, (B, n, 1), and one number a sample, (B, 1, 1), as long as the loop runs
    step = _stepper(ising, m, damping, solver)
    gap = update(m) - m
    residual = _largest(gap)
    path, residuals = [m], [residual]
    steps = torch.zeros_like(residual, dtype=torch.long)
    every = 1 if return_trajectory or solver == "sequential" else None  # a needless sweep costs more than a check
    for count in range(max_steps):
        active = residual > tol
        if all_done(active, count, every):
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
            spins[i] = torch.tanh(field / ising.temperature)
        m = torch.stack(spins, -1)
        return (m if ising.mask is None else m * ising.mask)[..., None]

    return sweep
