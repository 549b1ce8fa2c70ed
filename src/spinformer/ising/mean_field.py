"""Mean-field equations of an Ising model, solved sample by sample."""

from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer.ising.fused import can_solve, solve
from spinformer.ising.implicit import attach, kind_of
from spinformer.ising.model import Ising
from spinformer.ising.steps import MeanField, Options, iterate, through_plain_steps

Correction = Literal["naive", "tap"]
Backward = Literal["implicit", "unrolled"]
Solver = Literal["damped", "anderson", "sequential"]


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
    antagonistic couplings. Where there are several fixed points, the order of the spins may decide which it finds.
    correction "tap" subtracts the Onsager term m_i sum_j J_ij^2 (1 - m_j^2) / temperature from the field.

    A sample stops when its residual is at most `tol`, whatever the others do. All stop after `max_steps`; `converged`
    is false for those that did not get there. Under torch.compile the naive equations are one node, which does all of
    this; the others have a fixed number of steps, in which samples that are done stay as they are.

    backward "unrolled": gradients through every step taken, at least one: a sample that starts at its fixed point would
    have none otherwise. "implicit": those of the fixed point that a converged
    sample has reached up to `tol`, by the implicit function theorem; a sample that did not converge is differentiated
    through its steps, which the backward pass takes again for such samples alone. Memory until then does not grow with
    the steps. Under torch.compile the steps of the TAP equations are part of the graph. First derivatives only.
    """
    checks.instance("ising", ising, Ising)
    checks.choice("correction", correction, ("naive", "tap"))
    checks.choice("backward", backward, ("implicit", "unrolled"))
    checks.choice("solver", solver, ("damped", "anderson", "sequential"))
    if solver == "sequential" and correction != "naive":
        raise ValueError("the sequential solver is for the naive equations; take another solver for the TAP ones")
    check_solver(max_steps, damping, tol)
    start = torch.zeros_like(ising.fields)
    if init is not None:
        checks.floating("init", init, (2,))
        checks.shape("init", init, tuple(start.shape))
        checks.finite("init", init)
        start = init.to(start)
        if ising.mask is not None:
            start = start * ising.mask
    options: Options = (max_steps, damping, tol, correction, solver)
    unrolled = backward == "unrolled"
    if not return_trajectory and can_solve(ising.couplings, correction, solver, unrolled):
        m, residual, steps = solve(ising, start, options, unrolled)
        return MeanField(m, residual, residual <= tol, steps)
    if unrolled or not torch.is_grad_enabled():
        return iterate(ising, start, options, return_trajectory, int(unrolled))
    if torch.compiler.is_compiling():
        solved = iterate(ising, start, options, return_trajectory)
        m, steps = solved.magnetization.detach(), solved.magnetization
    else:
        with torch.no_grad():
            solved = iterate(ising.detached(), start, options, return_trajectory)
        m = solved.magnetization
        tensors = (start, ising.fields, ising.temperature, *ising.couplings.tensors())
        steps = _Steps.apply(m, ising.mask, kind_of(ising.couplings), options, *tensors)
    return replace(solved, magnetization=attach(ising, m, steps, solved.converged, correction))


def check_solver(max_steps: int, damping: float, tol: float) -> None:
    """At least one step, a part of it that is taken, and a positive tolerance."""
    checks.at_least("max_steps", max_steps, 1)
    checks.positive("tol", tol)
    checks.number("damping", damping)
    if not 0 < damping <= 1:
        raise ValueError(f"damping must be in (0, 1] (1 takes the full step); got {damping}")


class _Steps(torch.autograd.Function):
    """Forward: m, to which `iterate` came without a graph. Backward: the same steps again, with a graph, of those
    samples that have a gradient.
    """

    @staticmethod
    def forward(ctx: Any, m: Tensor, mask: Tensor | None, kind: str, options: Options, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(mask, *tensors)
        ctx.kind, ctx.options = kind, options
        ctx.set_materialize_grads(False)
        return m.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        mask, *tensors = ctx.saved_tensors
        slopes: list[Tensor | None] = [None] * len(tensors)
        if gradient is not None and gradient.any():
            rows = gradient.any(-1).nonzero().squeeze(-1)
            needed = [i for i, need in enumerate(ctx.needs_input_grad[4:]) if need]
            parts = [tensor[rows].requires_grad_(i in needed) for i, tensor in enumerate(tensors)]
            again = through_plain_steps(
                parts, None if mask is None else mask[rows], ctx.kind, ctx.options, gradient[rows]
            )
            for i, slope in zip(needed, again, strict=True):
                slopes[i] = slope.new_zeros(tensors[i].shape).index_copy_(0, rows, slope)
        return (None, None, None, None, *slopes)
