"""Gradients of a fixed point by the implicit function theorem.

At m = tanh(f(m, theta) / T), with K = df/dm (symmetric) and D = diag(1 - m^2),

    dm/dtheta = (I - D K / T)^-1 D / T df/dtheta,

so a gradient g with respect to m becomes lambda = (I - K D / T)^-1 g, applied to one update of the map. With
y = D^1/2 lambda this is (I - D^1/2 K D^1/2 / T) y = D^1/2 g, symmetric, and positive definite exactly where m is a
minimum of the free energy: conjugate gradients solve it with products K u alone. For the naive equations K = J; for
TAP, K u = J u - s o u + 2/T m o (J o J)(m o u), s_i = sum_j J_ij^2 (1 - m_j^2) / T.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spinformer.ising.couplings import Couplings, DenseCouplings, LowRankCouplings
from spinformer.ising.model import Ising
from spinformer.ising.stopping import all_done

MAX_ITERATIONS = 100
COMPILED_ITERATIONS = 16  # torch.compile unrolls the loop, so it gets a fixed, smaller number
KINDS: dict[str, type[Couplings]] = {"dense": DenseCouplings, "low rank": LowRankCouplings}


def attach(ising: Ising, m: Tensor, correction: str) -> Tensor:
    """The fixed point m, solved without a graph, as a differentiable function of the tensors of `ising`."""
    image = ising.update(m, correction)
    kind = next((name for name, cls in KINDS.items() if type(ising.couplings) is cls), None)
    if kind is None:
        raise TypeError(
            f"backward='implicit' knows {', '.join(cls.__name__ for cls in KINDS.values())}; "
            f"got {type(ising.couplings).__name__}; use backward='unrolled'"
        )
    tensors = [tensor.detach() for tensor in ising.couplings.tensors()]
    result: Tensor = _Implicit.apply(image, m, ising.temperature.detach(), ising.mask, correction, kind, *tensors)
    return result


class _Implicit(torch.autograd.Function):
    """Forward: the fixed point itself. Backward: conjugate gradients, then on into the one update `image`."""

    @staticmethod
    def forward(
        ctx: Any,
        image: Tensor,
        m: Tensor,
        temperature: Tensor,
        mask: Tensor | None,
        correction: str,
        kind: str,
        *tensors: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(m, temperature, mask, *tensors)
        ctx.correction, ctx.kind = correction, kind
        return m.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        m, temperature, mask, *tensors = ctx.saved_tensors
        couplings = KINDS[ctx.kind].of(tensors)
        adjoint = solve_adjoint(couplings, m, temperature, mask, ctx.correction, gradients[0])
        return (adjoint, *[None] * (5 + len(tensors)))


def solve_adjoint(
    couplings: Couplings, m: Tensor, temperature: Tensor, mask: Tensor | None, correction: str, gradient: Tensor
) -> Tensor:
    """lambda = (I - K D / T)^-1 g, (B, n), by conjugate gradients, each sample on its own.

    As in `Ising.mapping`, J / T is formed once. K / T, and D^1/2 J D^1/2 / T for the iterations, follow from it.
    """
    couplings = couplings.scaled(1 / temperature)
    m, gradient = m[..., None], gradient[..., None]  # columns, (B, n, 1)
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

    y = root * _conjugate_gradients(product, root * gradient)
    curved = couplings.product(y) + onsager(y) if tap else couplings.product(y)
    return (gradient + (curved if mask is None else curved * mask[..., None])).squeeze(-1)


def _conjugate_gradients(product: Callable[[Tensor], Tensor], right: Tensor) -> Tensor:
    """Solve A x = right, (B, n, 1); a sample stops at rounding level, or where A proves not to be positive definite.

    A sample that has stopped takes steps of length 0: its x and r stay as they are.
    """
    zero, tiny = right.new_zeros(()), torch.finfo(right.dtype).tiny
    x, r = torch.zeros_like(right), right
    p, square = r, r.square().sum(1, keepdim=True)
    goal = square * (8 * torch.finfo(right.dtype).eps) ** 2
    active = square > goal
    for count in range(COMPILED_ITERATIONS if torch.compiler.is_compiling() else MAX_ITERATIONS):
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
    return x
