"""Layer normalisation without weights, to 16 bits: one launch forward, one backward."""

from typing import Any

import torch
from torch import Tensor

from spinformer.kernels.support import block

EPSILON = 1e-5
WIDEST = 4096  # numbers of a token that one program holds


def can_norm(x: Tensor) -> bool:
    """Whether `normed` takes tokens of so many numbers."""
    return 0 < x.shape[-1] <= WIDEST and x.numel() > 0


def normed(x: Tensor, kind: torch.dtype) -> Tensor:
    """y = (x - mean) / sqrt(variance + EPSILON) of each token, as `kind`, of 16 bits

    x: (B, n, d). Its gradient takes y as it was rounded. Its twin: `torch.nn.functional.layer_norm`.
    """
    result: Tensor = _Normed.apply(x, kind)
    return result


def norm_into(x: Tensor, out: Tensor, inverse: Tensor) -> None:
    """`normed` into room for texts of at least as many tokens, (B, length, d); inverse: 1 / the roots, (B, n)."""
    from spinformer.kernels.device import tokens as device

    (_, n, d), x = x.shape, x.contiguous()
    rows, sizes = x.numel() // d, _sizes(d)
    device.normed[(-(-rows // sizes["ROWS"]),)](x, out, inverse, rows, n, out.shape[1], d, EPSILON, **sizes)


def norm_slopes(gradient: Tensor, y: Tensor, inverse: Tensor, kind: torch.dtype) -> Tensor:
    """The gradient of x, (B, n, d), as `kind`, from that of y, (B, length, d), of which the first n count."""
    from spinformer.kernels.device import tokens as device

    (batch, n), (_, length, d) = inverse.shape, y.shape
    rows, sizes, out = batch * n, _sizes(d), y.new_empty(batch, n, d, dtype=kind)
    device.normed_backward[(-(-rows // sizes["ROWS"]),)](
        gradient.contiguous(), y, inverse, out, rows, n, length, d, **sizes
    )
    return out


def _sizes(d: int) -> dict[str, int]:
    width = block(d)
    return {"ROWS": max(1, 2048 // width), "D": width, "num_warps": 4 if width <= 2048 else 8}


class _Normed(torch.autograd.Function):
    """Both launches."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kind: torch.dtype) -> Tensor:
        out, inverse = torch.empty(x.shape, dtype=kind, device=x.device), x.new_empty(x.shape[:2], dtype=torch.float32)
        norm_into(x, out, inverse)
        ctx.save_for_backward(out, inverse)
        ctx.kind = x.dtype
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        y, inverse = ctx.saved_tensors
        return norm_slopes(gradient, y, inverse, ctx.kind), None
