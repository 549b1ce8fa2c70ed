"""One operator, two ways in: directly where Python runs, and as a node of a graph under torch.compile and torch.export.

Through torch.library a call costs several times what its launches do, so eager calls go past it.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spinformer._base.outside import OPERATOR, Inside
from spinformer._base.precision import full_precision

_GRAPH = Inside()  # operators that are called within become nodes: the gradient of a node is traced without Python


class Operator:
    """A function of tensors with a form for graphs and, once `register_autograd` gave it one, a gradient.

    name: in the namespace `spinformer` of torch.library. Arguments are positional; one may be a list of tensors.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        @wraps(function)
        def within(*arguments: Any, **named: Any) -> Any:
            with OPERATOR:
                return function(*arguments, **named)

        self.node = torch.library.custom_op(f"spinformer::{name}", within, mutates_args=())
        self.function, self.__doc__ = function, function.__doc__
        self.keep: Callable[..., None] | None = None
        self.slopes: Callable[..., Sequence[Any]] | None = None

    def register_fake(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """As `torch.library.register_fake`: the same on tensors without contents."""
        return self.node.register_fake(function)

    def register_autograd(self, slopes: Callable[..., Sequence[Any]], *, setup_context: Callable[..., None]) -> None:
        """As `torch.library.register_autograd`."""

        def within_graph(ctx: Any, *gradients: Any) -> Sequence[Any]:
            with _GRAPH:
                return slopes(ctx, *gradients)

        self.node.register_autograd(within_graph, setup_context=setup_context)
        self.keep, self.slopes = setup_context, slopes

    def __call__(self, *arguments: Any) -> Any:
        """What the function gives, with its gradient."""
        if torch.compiler.is_compiling() or _GRAPH:
            return self.node(*arguments)
        if self.slopes is None or not torch.is_grad_enabled():
            return self.function(*arguments)
        lengths = [len(one) if isinstance(one, list) else None for one in arguments]
        flat = [part for one in arguments for part in (one if isinstance(one, list) else (one,))]
        return _Eager.apply(self, lengths, *flat)


def operator(name: str) -> Callable[[Callable[..., Any]], Operator]:
    """A decorator that makes an `Operator` of a function."""
    return lambda function: Operator(name, function)


class _Eager(torch.autograd.Function):
    """The operator's function, with the gradient that it registered. Lists of tensors come flat."""

    @staticmethod
    def forward(ctx: Any, called: Operator, lengths: list[int | None], *flat: Any) -> Any:
        parts = iter(flat)
        arguments = tuple(next(parts) if length is None else [next(parts) for _ in range(length)] for length in lengths)
        output = called.function(*arguments)
        assert called.keep is not None
        called.keep(ctx, arguments, output)
        ctx.called = called
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        found = full_precision(ctx.called.slopes)(ctx, *gradients)  # a backward pass may be called under autocast
        return (None, None, *(part for one in found for part in (one if isinstance(one, list) else (one,))))
