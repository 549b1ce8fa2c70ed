"""Sums over coalitions and fixed points run in float32 or float64, whatever the input's type, also under autocast."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

# Numbers between two to this power and its inverse have squares, and sums of squares, well within float32.
FAR = 30

P = ParamSpec("P")
R = TypeVar("R")


def widen(tensor: Tensor) -> Tensor:
    """float16 and bfloat16 become float32; float32 and float64 stay."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def power_of_two(size: Tensor) -> Tensor:
    """The power of two just below each of these sizes where it is far from 1, else 1.

    Squares of what was divided by it neither overflow nor vanish, and ordinary numbers stay as they are.
    """
    exponent = size.log2().floor().clamp(-100, 100)
    return torch.where(exponent.abs() > FAR, exponent.exp2(), 1.0)


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with autocast switched off on every device."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if not (torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")):
            return function(*args, **kwargs)
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return function(*args, **kwargs)

    return wrapped


def safe_sqrt(squares: Tensor) -> Tensor:
    """Square root with gradient 0, not infinity, where the argument is 0 (or rounds below it)."""
    root: Tensor = _SafeRoot.apply(squares)
    return root


def safe_divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Quotient that is 0, with gradient 0, where the (non-negative) denominator is 0."""
    quotient: Tensor = _Quotient.apply(numerator, denominator.masked_fill(denominator <= 0, torch.inf))
    return quotient


class _SafeRoot(torch.autograd.Function):
    """r = sqrt(max(x, 0)), dr/dx = 1 / (2 r), 0 where r is."""

    @staticmethod
    def forward(ctx: Any, squares: Tensor) -> Tensor:
        root = squares.relu().sqrt()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (root,) = ctx.saved_tensors
        return gradients[0] / (2 * root).masked_fill(root == 0, torch.inf)


class _Quotient(torch.autograd.Function):
    """q = a / b, dq/da = 1 / b, dq/db = -q / b: in half the operations of torch's own, which does not store q."""

    @staticmethod
    def forward(ctx: Any, numerator: Tensor, denominator: Tensor) -> Tensor:
        quotient = numerator / denominator
        ctx.save_for_backward(denominator, quotient)
        ctx.shapes = numerator.shape, denominator.shape
        return quotient

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None]:
        denominator, quotient = ctx.saved_tensors
        to_numerator, to_denominator = gradients[0] / denominator, None
        if ctx.needs_input_grad[1]:
            to_denominator = -(to_numerator * quotient).sum_to_size(ctx.shapes[1])
        return to_numerator.sum_to_size(ctx.shapes[0]) if ctx.needs_input_grad[0] else None, to_denominator
