"""A way out of an operator, inside which torch records no graph."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

R = TypeVar("R")


class _Depth(threading.local):
    depth = 0


_INSIDE = _Depth()


@contextmanager
def inside_operator() -> Iterator[None]:
    """Torch called the block as an operator of a graph: this thread records no gradients in it."""
    _INSIDE.depth += 1
    try:
        yield
    finally:
        _INSIDE.depth -= 1


def outside_operators(function: Callable[..., R], *arguments: Any) -> R:
    """The function's result, where it can ask torch for gradients. For rare work of a backward pass.

    Outside of graphs that is here. Inside one it is a thread of its own, and on the CPU: torch computes all gradients
    of a GPU in one thread, which is the one that waits here for the result.
    """
    if not _INSIDE.depth:
        return function(*arguments)
    homes: list[torch.device] = []

    def to_cpu(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        homes.append(value.device)
        return value.detach().cpu()

    moved = tree_map(to_cpu, arguments)
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(function, *moved).result()
    home: Any = homes[0] if homes else torch.device("cpu")
    returned: R = tree_map(lambda value: value.to(home) if isinstance(value, Tensor) else value, result)
    return returned
