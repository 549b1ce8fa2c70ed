"""Fields, couplings and mean field in share units as one operator, on a GPU.

Its twin: `spinformer.attention.hamiltonian` and `spinformer.ising.mean_field`.
"""

import math
from typing import Any

import torch
from torch import Tensor

from spinformer._base.outside import outside_operators
from spinformer._base.precision import full_precision
from spinformer._base.recording import recording
from spinformer.attention.hamiltonian import Units, hamiltonian
from spinformer.attention.settings import Settings
from spinformer.ising import Couplings, DenseCouplings, Ising, LowRankCouplings, MeanField, mean_field
from spinformer.ising.low_rank import gathered_slopes, slopes_of_products
from spinformer.ising.mean_field import Solver
from spinformer.kernels.gathered import gathered_of
from spinformer.kernels.operator import operator
from spinformer.kernels.share_units import dense_form, settle, settle_backward

Options = tuple[int, float, float, bool]  # max_steps, damping, tol, anderson


def settle_fused(
    values: Tensor,
    gate: Tensor,
    temperature: Tensor,
    interactions: Couplings,
    counts: Tensor,
    mask: Tensor | None,
    settings: Settings,
    units: Units | None,
) -> tuple[Tensor, Tensor, MeanField] | None:
    """Fields, the factor of the interactions and the mean field, as `hamiltonian` takes its arguments

    None where the operator is not for these: other units, or couplings that are not a matrix that a program keeps.
    """
    usual = (settings.normalisation, settings.correction, settings.backward) == ("L1", "naive", "implicit")
    if units is None or not usual or settings.solver == "sequential" or not isinstance(interactions, DenseCouplings):
        return None
    if dense_form(interactions.matrix) is None:
        return None
    options = (settings.max_steps, settings.damping, settings.tol, settings.solver == "anderson")
    matrix, origin = interactions.matrix, list(interactions.origin or ())
    matrix = matrix.detach() if origin else matrix
    arguments = (values, gate, matrix, temperature, units.gain, units.part, origin, mask, counts)
    fields, factor, m, residual, steps, *_ = settle(*arguments, *options)
    return fields, factor, MeanField(m, residual, residual <= settings.tol, steps)


@full_precision
def plain_slopes(
    leaves: list[Tensor], mask: Tensor | None, counts: Tensor, options: Options, gradients: list[Tensor]
) -> tuple[Tensor, ...]:
    """Gradients of values, gate, matrix, temperature, gain, part and, if they are given, factors and weights

    By the plain twin. gradients: of fields, factor and magnetisation.
    """
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    values, gate, matrix, temperature, gain, part, *origin = leaves
    max_steps, damping, tol, anderson = options
    with torch.enable_grad():
        interactions = LowRankCouplings.smaller(*origin) if origin else DenseCouplings(matrix, hollow=True)
        units = Units(gain, part)
        fields, factor = hamiltonian(values, gate, temperature, interactions, counts, mask, Settings(), units)
        assert factor is not None
        ising = Ising(fields, interactions.scaled(factor), temperature, mask, trusted=True)
        solver: Solver = "anderson" if anderson else "damped"
        solved = mean_field(ising, max_steps=max_steps, damping=damping, tol=tol, solver=solver)
    outputs = [fields, factor, solved.magnetization]
    return torch.autograd.grad(outputs, leaves, gradients, materialize_grads=True)


@operator("settle_slopes")
def settle_slopes(
    gradients: list[Tensor],
    leaves: list[Tensor],
    mask: Tensor | None,
    counts: Tensor,
    kept: list[Tensor],
    max_steps: int,
    damping: float,
    tol: float,
    anderson: bool,
) -> list[Tensor]:
    """Gradients of values, gate, matrix, temperature, gain and part, and of factors and weights if they are among the
    leaves; then that of the matrix is empty. With narrow columns, what `gathered_slopes` takes in place of the last
    two. kept: what the operator returned.
    """
    fixed = recording()  # then every sample counts as converged: the host cannot ask which did not
    own, origin = leaves[:6], leaves[6:]
    to_values, to_gate, products, numbers, solved = settle_backward(
        gradients, own, mask, counts, kept, math.inf if fixed else tol, whole=not origin
    )
    to_matrix = numbers.new_empty(len(numbers), 0) if origin else products[0]
    slopes = [to_values, to_gate, to_matrix, *(number.clone() for number in numbers[:, :3].unbind(1))]
    narrow = len(origin) == 3
    if origin:  # from that of their matrix, g_1 m_1' + g_2 m_2'
        slope, other, state, leading = products
        pairs = torch.stack([state, slope, leading, other], 1)
        slopes += [pairs] if narrow else slopes_of_products(origin[0], origin[1], pairs)
    if not fixed and not bool(solved.all()):
        rows = (~solved).nonzero().squeeze(-1)
        if narrow:
            leaves = [*own, torch.cat([origin[2].float(), origin[0]], -1), origin[1]]
        parts, there = [leaf[rows] for leaf in leaves], None if mask is None else mask[rows]
        options, given = (max_steps, damping, tol, anderson), [gradient[rows] for gradient in gradients]
        again = list(outside_operators(plain_slopes, parts, there, counts[rows], options, given))
        if narrow:
            slopes[6][rows] = 0
            slopes, again = [*slopes, rows, *again[6:]], again[:6]
        for slope, part in zip(slopes[: len(again)], again, strict=True):
            if slope.numel():
                slope[rows] = part
    return slopes


@settle_slopes.register_fake
def _(gradients: Any, leaves: list[Tensor], *rest: Any) -> list[Tensor]:
    found = [leaf.new_empty(leaf.shape) for leaf in leaves]
    if len(leaves) > 6:
        found[2] = leaves[2].new_empty(len(leaves[2]), 0)
    return found


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *leaves, origin, mask, counts = inputs[:9]
    ctx.save_for_backward(*leaves, *origin, mask, counts, *output)
    ctx.options, ctx.leaves = inputs[9:], len(leaves) + len(origin)
    ctx.gathered = gathered_of(origin[0]) if len(origin) == 3 else None
    ctx.mark_non_differentiable(*output[3:])


def _slopes(ctx: Any, to_fields: Tensor, to_factor: Tensor, to_state: Tensor, *_: Any) -> tuple[Any, ...]:
    leaves, (mask, counts, *kept) = list(ctx.saved_tensors[: ctx.leaves]), ctx.saved_tensors[ctx.leaves :]
    slopes = settle_slopes([to_fields, to_factor, to_state], leaves, mask, counts, kept, *ctx.options)
    own, origin = slopes[:6], slopes[6:]
    if ctx.gathered is not None:
        origin = [*gathered_slopes(leaves[6], leaves[7], ctx.gathered, *origin), None]
    if origin:
        own[2] = None
    return (*own, origin, *[None] * 6)


settle.register_autograd(_slopes, setup_context=_keep)
