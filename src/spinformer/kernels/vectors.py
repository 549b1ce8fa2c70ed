"""Players' vectors made ready for a game in share units: within range, with squared lengths and the game's scale."""

from typing import Any

import torch
from torch import Tensor

from spinformer.kernels.operator import operator
from spinformer.kernels.support import block, rows_of


def _blocks(n: int, d: int) -> tuple[int, dict[str, int]]:
    rows = rows_of(n, min(16, block(n)))
    return -(-n // rows), {"N": rows, "D": min(128, block(d))}


@operator("ready_vectors")
def ready_vectors(values: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """v_i / unit, |v_i / unit|^2 and scale = 1 / sum over i of |v_i / unit|; and the unit

    values: (B, n, d); mask: bool, (B, n), false for padding, which becomes 0. The unit is a power of two that keeps
    squares within range, 1 for ordinary numbers, so that nothing is lost. Its twin: `NormGame`.
    """
    from spinformer.kernels.device import vectors as device

    batch, n, d = values.shape
    values = values.contiguous()
    given = values if mask is None else mask.contiguous()
    out, squares = values.new_empty(values.shape), values.new_empty(batch, n)
    unit, scale = values.new_empty(batch), values.new_empty(batch)
    rows, sizes = _blocks(n, d)
    whole = min(1024, block(n))
    device.largest[(batch, rows)](values, squares, n, 1, d, d, **sizes)
    device.units[(batch,)](squares, unit, n, N=whole)
    device.ready[(batch, rows)](values, given, unit, out, squares, n, d, MASKED=mask is not None, **sizes)
    device.shares[(batch,)](squares, scale, n, N=whole)
    return out, squares, scale, unit


@operator("ready_vectors_backward")
def ready_vectors_backward(
    to_vectors: Tensor,
    to_squares: Tensor,
    to_scale: Tensor,
    vectors: Tensor,
    squares: Tensor,
    scale: Tensor,
    unit: Tensor,
    mask: Tensor | None,
) -> Tensor:
    """The gradient of the values."""
    from spinformer.kernels.device import vectors as device

    batch, n, d = vectors.shape
    rows, sizes = _blocks(n, d)
    out = torch.empty_like(vectors)
    given = vectors if mask is None else mask.contiguous()
    slopes = [tensor.contiguous() for tensor in (to_vectors, to_squares, to_scale)]
    device.ready_backward[(batch, rows)](
        *slopes, vectors, squares, scale, unit, given, out, n, d, MASKED=mask is not None, **sizes
    )
    return out


@ready_vectors.register_fake
def _(values: Tensor, mask: Any) -> Any:
    batch, n, _ = values.shape
    return tuple(values.new_empty(shape) for shape in (values.shape, (batch, n), (batch,), (batch,)))


@ready_vectors_backward.register_fake
def _(to_vectors: Any, to_squares: Any, to_scale: Any, vectors: Tensor, *rest: Any) -> Tensor:
    return vectors.new_empty(vectors.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[:4], inputs[1])
    ctx.mark_non_differentiable(*output[3:])


def _slopes(ctx: Any, *slopes: Tensor) -> Any:
    return ready_vectors_backward(*slopes[:3], *ctx.saved_tensors), None


ready_vectors.register_autograd(_slopes, setup_context=_keep)
