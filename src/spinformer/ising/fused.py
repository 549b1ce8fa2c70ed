"""The mean field as one operator, on a GPU and under torch.compile, for which it is one node.

Where `spinformer.kernels.spins` has a form for the couplings it is one launch forward and one backward; larger low-rank
couplings take a few launches a step (`spinformer.kernels.factors`). The plain iterations beside it are its twin. All
other couplings are left to them, inside the operator, and so is the gradient of samples that did not converge, through
Anderson's steps.
"""

import math
from typing import Any

import torch
from torch import Tensor

from spinformer._base.outside import outside_operators
from spinformer._base.recording import recording
from spinformer.ising.couplings import Couplings, LowRankCouplings
from spinformer.ising.implicit import KINDS, kind_of
from spinformer.ising.implicit import solve_adjoint as plain_adjoint
from spinformer.ising.low_rank import gathered_slopes, slopes_of_products
from spinformer.ising.model import Ising
from spinformer.ising.steps import Options, iterate, through_plain_steps
from spinformer.kernels.factors import can_factor, solve_factored, solve_factored_adjoint
from spinformer.kernels.gathered import gathered_of
from spinformer.kernels.operator import operator
from spinformer.kernels.spins import FACTORS, form_of, solve_adjoint, solve_spins, through_steps
from spinformer.kernels.support import usable


def can_solve(couplings: Couplings, correction: str, solver: str, unrolled: bool) -> bool:
    """Whether the operator takes these couplings and options."""
    if correction != "naive" or solver == "sequential" or type(couplings) not in KINDS.values():
        return False
    tensors = list(couplings.tensors())
    if not usable(*tensors[:3]):
        return torch.compiler.is_compiling() and not unrolled
    form = form_of(tensors)
    return not unrolled or (solver == "damped" and form is not None and form.form != FACTORS)


@operator("mean_field")
def fused_mean_field(
    fields: Tensor,
    temperature: Tensor,
    start: Tensor,
    mask: Tensor | None,
    couplings: list[Tensor],
    kind: str,
    max_steps: int,
    damping: float,
    tol: float,
    anderson: bool,
    unrolled: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """m_i = tanh((h_i + sum_j J_ij m_j) / temperature): m, its residual, steps taken, and every state if unrolled

    Else in its place J m, where the couplings are of low rank and too large for one program.
    """
    if form_of(couplings) is not None:
        return solve_spins(
            fields, 1 / temperature, start, mask, couplings, max_steps, int(unrolled), damping, tol, anderson, unrolled
        )
    if can_factor(couplings):
        return solve_factored(fields, 1 / temperature, start, mask, couplings, max_steps, damping, tol, anderson)
    ising = Ising(fields, KINDS[kind].of(couplings), temperature, mask, trusted=True)
    plain = iterate(ising, start, (max_steps, damping, tol, "naive", "anderson" if anderson else "damped"))
    return plain.magnetization.clone(), plain.residual, plain.steps, torch.empty_like(fields)


@operator("mean_field_backward")
def fused_mean_field_backward(
    gradient: Tensor,
    fields: Tensor,
    temperature: Tensor,
    start: Tensor,
    mask: Tensor | None,
    couplings: list[Tensor],
    state: Tensor,
    residual: Tensor,
    steps: Tensor,
    path: Tensor,
    kind: str,
    max_steps: int,
    damping: float,
    tol: float,
    anderson: bool,
    unrolled: bool,
) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Gradients of fields, temperature, start and couplings; with narrow columns, what `gathered_slopes` takes."""
    cold = 1 / temperature
    if unrolled:
        inner, to_fields, to_start, to_cold = through_steps(
            gradient, fields, cold, mask, couplings, path, steps, damping
        )
        to_couplings = [torch.bmm(inner.mT * cold[:, None, None], path[:, :-1])]
        return to_fields, -to_cold * cold.square(), to_start, to_couplings
    fixed = recording()  # then every sample counts as converged: the host cannot ask which did not
    arguments = (gradient, fields, cold, state, residual, mask, couplings, math.inf if fixed else tol)
    known = form_of(couplings) is not None
    to_fields, to_cold, solved = solve_adjoint(*arguments) if known else _large_adjoint(*arguments, path)
    to_couplings = _to_couplings(to_fields, state, couplings)
    to_temperature, to_start = -to_cold * cold.square(), torch.zeros_like(start)
    if not fixed and not bool(solved.all()):
        rows = (~solved).nonzero().squeeze(-1)
        options = (max_steps, damping, tol, "naive", "anderson" if anderson else "damped")
        own = LowRankCouplings.of(couplings).whole().tensors() if len(couplings) == 4 else couplings
        tensors = [tensor[rows] for tensor in (start, fields, temperature, *own)]
        there = None if mask is None else mask[rows]
        again = outside_operators(through_plain_steps, tensors, there, kind, options, gradient[rows])
        if len(couplings) == 4:
            to_couplings[0][rows] = 0
            to_couplings += [rows, *again[3:5]]
            again = again[:3]
        slopes = (to_start, to_fields, to_temperature, *to_couplings[: len(again) - 3])
        for whole, part in zip(slopes, again, strict=True):
            whole[rows] = part
    return to_fields, to_temperature, to_start, to_couplings


def _large_adjoint(
    gradient: Tensor,
    fields: Tensor,
    cold: Tensor,
    state: Tensor,
    residual: Tensor,
    mask: Tensor | None,
    couplings: list[Tensor],
    tol: float,
    image: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """What `spinformer.kernels.spins.solve_adjoint` gives, by launches for each step or by plain iterations

    image: J m, where the kernels of the first have it.
    """
    own, converged = KINDS["dense" if len(couplings) == 1 else "low rank"].of(couplings), residual <= tol
    found = None
    if can_factor(couplings):
        root = (1 - state.square()).clamp_min(0).sqrt()
        root = root if mask is None else root * mask
        right = torch.where(converged[:, None], root * gradient, 0.0)
        x, solved = solve_factored_adjoint(right, root, cold, couplings)
        curved = cold[:, None] * own.product((root * x)[..., None]).squeeze(-1)
        found = gradient + (curved if mask is None else curved * mask), solved & converged
    if found is None or not (recording() or bool(found[1].all())):
        adjoint, some = plain_adjoint(own, state, converged, 1 / cold, mask, "naive", gradient)
        found = adjoint, torch.ones_like(converged) if some is None else some
    inner = fields + (image if can_factor(couplings) else own.product(state[..., None]).squeeze(-1))
    pulled = found[0] * (1 - torch.tanh(cold[:, None] * inner).square())
    if mask is not None:
        pulled = pulled * mask
    return pulled * cold[:, None], (pulled * inner).sum(-1), found[1]


def _to_couplings(pulled: Tensor, state: Tensor, couplings: list[Tensor]) -> list[Tensor]:
    """Gradients of the couplings' tensors, from that of J m, (B, n); with narrow columns m and that gradient."""
    if len(couplings) == 1:
        return [pulled[:, :, None] * state[:, None]]
    pairs = torch.stack([state, pulled], 1)
    if len(couplings) == 4:
        return [pairs]
    factors, weights, diagonal = couplings
    return [*slopes_of_products(factors, weights, pairs), torch.zeros_like(diagonal)]


@fused_mean_field.register_fake
def _(fields: Tensor, temperature: Tensor, start: Tensor, mask: Any, couplings: Any, *options: Any) -> Any:
    batch, n = fields.shape
    path = fields.new_empty((batch, options[1] + 1, n) if options[-1] else (batch, n))
    steps = torch.empty(batch, dtype=torch.int64, device=fields.device)
    return fields.new_empty(batch, n), fields.new_empty(batch), steps, path


@fused_mean_field_backward.register_fake
def _(
    gradient: Tensor, fields: Tensor, temperature: Tensor, start: Tensor, mask: Any, couplings: Any, *rest: Any
) -> Any:
    def like(tensor: Tensor) -> Tensor:
        return tensor.new_empty(tensor.shape)

    return (
        like(fields),
        like(temperature),
        like(start),
        [like(tensor) for tensor in couplings],
    )


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    fields, temperature, start, mask, couplings, *options = inputs
    ctx.save_for_backward(fields, temperature, start, mask, *couplings, *output)
    ctx.options, ctx.gathered = options, gathered_of(couplings[0])
    ctx.mark_non_differentiable(*output[1:])


def _slopes(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Any, ...]:
    fields, temperature, start, mask, *rest = ctx.saved_tensors
    couplings, output = rest[:-4], rest[-4:]
    to_fields, to_temperature, to_start, to_couplings = fused_mean_field_backward(
        gradient, fields, temperature, start, mask, couplings, *output, *ctx.options
    )
    if len(couplings) == 4:
        found = gathered_slopes(couplings[0], couplings[1], ctx.gathered, *to_couplings)
        to_couplings = [*found, None, None]
    return (to_fields, to_temperature, to_start, None, to_couplings, *[None] * len(ctx.options))


fused_mean_field.register_autograd(_slopes, setup_context=_keep)


def solve(ising: Ising, start: Tensor, options: Options, unrolled: bool) -> tuple[Tensor, Tensor, Tensor]:
    """m with its gradient, residual and steps; options: as in `mean_field`."""
    max_steps, damping, tol, _, solver = options
    (first, *rest), kind = ising.couplings.tensors(), kind_of(ising.couplings)
    # the gradients of factors and weights include what the diagonal owes to them
    couplings = [first, *rest[:1], *(diagonal.detach() for diagonal in rest[1:])]
    settings = (max_steps, damping, tol, solver == "anderson", unrolled)
    m, residual, steps, _ = fused_mean_field(
        ising.fields, ising.temperature, start, ising.mask, couplings, kind, *settings
    )
    return m, residual, steps
