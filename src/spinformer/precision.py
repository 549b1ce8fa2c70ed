"""Where sums over coalitions and fixed points run: float32 or wider, whatever comes in, autocast or not."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")


def widen(tensor: Tensor) -> Tensor:
    """float16 and bfloat16 become float32; float32 and float64 stay."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` with autocast switched off on every device."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return function(*args, **kwargs)

    return wrapped


def safe_sqrt(squares: Tensor) -> Tensor:
    """Square root with gradient 0, not infinity, where the argument is 0 (or rounds below it)."""
    positive = squares > 0
    return torch.where(positive, squares, 1.0).sqrt() * positive


def safe_divide(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Quotient that is 0, with gradient 0, where the (non-negative) denominator is 0."""
    positive = denominator > 0
    return numerator / torch.where(positive, denominator, 1.0) * positive
