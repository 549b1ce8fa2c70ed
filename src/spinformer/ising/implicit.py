"""Gradients of a fixed point by the implicit function theorem.

At m = tanh(f(m, theta) / T), with K = df/dm (symmetric) and D = diag(1 - m^2),

    dm/dtheta = (I - D K / T)^-1 D / T df/dtheta,

so a gradient g with respect to m becomes lambda = (I - K D / T)^-1 g, applied to one update of the map. With
y = D^1/2 lambda this is (I - D^1/2 K D^1/2 / T) y = D^1/2 g, symmetric, and positive definite exactly where m is a
minimum of the free energy: conjugate gradients solve it with products K u alone. At a saddle, where Anderson's
extrapolation may end, they solve it for the square of the matrix. For the naive equations K = J; for TAP,
K u = J u - s o u + 2/T m o (J o J)(m o u), s_i = sum_j J_ij^2 (1 - m_j^2) / T.

None of this holds where m is no fixed point. A sample that did not converge passes its gradient on to its steps.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spinformer._base.precision import full_precision
from spinformer._base.recording import recording
from spinformer._base.stopping import all_done
from spinformer.ising.couplings import Couplings, DenseCouplings, LowRankCouplings
from spinformer.ising.model import Ising
from spinformer.kernels.factors import ACCURACY, MAX_ITERATIONS, RECORDED_ITERATIONS

COMPILED_ITERATIONS = 16  # torch.compile unrolls the loop, so it gets a fixed, smaller number
KINDS: dict[str, type[Couplings]] = {"dense": DenseCouplings, "low rank": LowRankCouplings}


def kind_of(couplings: Couplings) -> str:
    """The name in KINDS of these couplings' class."""
    kind = next((name for name, cls in KINDS.items() if type(couplings) is cls), None)
    if kind is None:
        raise TypeError(
            f"backward='implicit' knows {', '.join(cls.__name__ for cls in KINDS.values())}; "
            f"got {type(couplings).__name__}; use backward='unrolled'"
        )
    return kind


def attach(ising: Ising, m: Tensor, steps: Tensor, converged: Tensor, correction: str) -> Tensor:
    """The state m as a differentiable function of the tensors of `ising`.

    m: (B, n), without a graph; steps: the same numbers as a function of the steps that led there; converged: (B,),
    where m is a fixed point, at which the implicit function theorem holds. The others get the gradient of `steps`.
    """
    image = ising.image(m, correction)
    tensors = [tensor.detach() for tensor in ising.couplings.tensors()]
    kind, temperature = kind_of(ising.couplings), ising.temperature.detach()
    result: Tensor = _Implicit.apply(image, steps, m, converged, temperature, ising.mask, correction, kind, *tensors)
    return result


class _Implicit(torch.autograd.Function):
    """Forward: the state itself. Backward: conjugate gradients, then on into the one update `image`; or, of samples
    to which the theorem does not apply, into `steps`.
    """

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        steps: Tensor,
        m: Tensor,
        converged: Tensor,
        temperature: Tensor,
        mask: Tensor | None,
        correction: str,
        kind: str,
        *tensors: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(m, converged, temperature, mask, *tensors)
        ctx.correction, ctx.kind = correction, kind
        return m.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        m, converged, temperature, mask, *tensors = ctx.saved_tensors
        couplings = KINDS[ctx.kind].of(tensors)
        adjoint, solved = solve_adjoint(couplings, m, converged, temperature, mask, ctx.correction, gradient)
        to_steps = None
        if solved is not None:
            here = solved[:, None]
            adjoint, to_steps = adjoint.masked_fill(~here, 0.0), gradient.masked_fill(here, 0.0)
        return (adjoint, to_steps, *[None] * (6 + len(tensors)))


@full_precision
def solve_adjoint(
    couplings: Couplings,
    m: Tensor,
    converged: Tensor,
    temperature: Tensor,
    mask: Tensor | None,
    correction: str,
    gradient: Tensor,
) -> tuple[Tensor, Tensor | None]:
    """lambda = (I - K D / T)^-1 g, (B, n), by conjugate gradients, each converged sample on its own.

    And which samples converged and are solved, (B,), None for all. As in `Ising.mapping`, J / T is formed once.
    K / T, and D^1/2 J D^1/2 / T for the iterations, follow from it.
    """
    couplings = couplings.scaled(1 / temperature)
    m, gradient, converged = m[..., None], gradient[..., None], converged[:, None, None]  # columns, (B, n, 1)
    slack = (1 - m.square()).clamp_min(0)
    if mask is not None:
        slack = slack * mask[..., None]
    root = slack.sqrt()
    inner = couplings.between(root)
    tap = correction == "tap"
    reaction = couplings.squared_matvec(slack.squeeze(-1))[..., None] if tap else torch.zeros_like(m)

    def onsager(u: Tensor) -> Tensor:
        return 2 * m * couplings.squared_matvec((m * u).squeeze(-1))[..., None] - reaction * u

    def product(v: Tensor) -> Tensor:
        image = inner.add_product(v, v, alpha=-1)
        return image - root * onsager(root * v) if tap else image

    right = torch.where(converged, root * gradient, 0.0)
    x, solved = _conjugate_gradients(product, right)
    every = False
    if not torch.compiler.is_compiling() and not recording():
        every = bool((solved & converged).all())
        if not every:
            x, solved = _at_saddles(product, right, x, solved)
    y = root * x
    curved = couplings.product(y) + onsager(y) if tap else couplings.product(y)
    adjoint = (gradient + (curved if mask is None else curved * mask[..., None])).squeeze(-1)
    return adjoint, None if every else (solved & converged).flatten()


def _iterations() -> int:
    if torch.compiler.is_compiling():
        return COMPILED_ITERATIONS
    return RECORDED_ITERATIONS if recording() else MAX_ITERATIONS


def _at_saddles(product: Callable[[Tensor], Tensor], right: Tensor, x: Tensor, solved: Tensor) -> tuple[Tensor, Tensor]:
    """A^2 x = A right for the samples whose A proved not to be positive definite, or too close to singular."""
    again, _ = _conjugate_gradients(lambda v: product(product(v)), product(torch.where(solved, 0.0, right)))
    x = torch.where(solved, x, again)
    rest = (product(x) - right).square().sum(1, keepdim=True)
    return x, solved | (rest <= ACCURACY**2 * right.square().sum(1, keepdim=True))


def _conjugate_gradients(product: Callable[[Tensor], Tensor], right: Tensor) -> tuple[Tensor, Tensor]:
    """Solve A x = right, (B, n, 1); a sample stops at rounding level, or where A proves not to be positive definite.

    A sample that has stopped takes steps of length 0: its x and r stay as they are. And whether it is solved, to
    ACCURACY, (B, 1, 1).
    """
    zero, tiny = right.new_zeros(()), torch.finfo(right.dtype).tiny
    x, r = torch.zeros_like(right), right
    p, square = r, r.square().sum(1, keepdim=True)
    goal, enough = square * (8 * torch.finfo(right.dtype).eps) ** 2, square * ACCURACY**2
    active = square > goal
    for count in range(_iterations()):
        if all_done(active, count):
            break
        image = product(p)
        curvature = (p * image).sum(1, keepdim=True)
        active = active & (curvature > 0)
        step = torch.where(active, square / curvature, zero)
        x, r = torch.addcmul(x, step, p), torch.addcmul(r, step, image, value=-1)
        next_square = r.square().sum(1, keepdim=True)
        p = torch.addcmul(r, next_square / square.clamp_min(tiny), p)
        square = next_square
        active = active & (square > goal)
    return x, square <= enough
