"""A way out of an operator, inside which torch records no graph."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

R = TypeVar("R")


class Inside(threading.local):
    """True within its own `with` blocks, in the thread that entered them alone."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1

    def __bool__(self) -> bool:
        return self.depth > 0


OPERATOR = Inside()  # torch called the block as an operator of a graph: the thread records no gradients in it


def outside_operators(function: Callable[..., R], *arguments: Any) -> R:
    """The function's result, where it can ask torch for gradients. For rare work of a backward pass.

    Outside of graphs that is here. Inside one it is a thread of its own, and on the CPU: torch computes all gradients
    of a GPU in one thread, which is the one that waits here for the result.
    """
    if not OPERATOR:
        return function(*arguments)
    home: torch.device = next(leaf.device for leaf in tree_leaves(arguments) if isinstance(leaf, Tensor))
    moved = tree_map_only(Tensor, lambda tensor: tensor.detach().cpu(), arguments)
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(function, *moved).result()
    returned: R = tree_map_only(Tensor, lambda tensor: tensor.to(home), result)
    return returned
