"""A way out of an operator, inside which torch records no graph."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

R = TypeVar("R")


def outside_operators(function: Callable[..., R], *arguments: Any) -> R:
    """The function's result, from a thread of its own, on the caller's CUDA stream.

    That torch is inside an operator is known to the thread alone. For rare work that needs gradients there.
    """
    stream = torch.cuda.current_stream() if torch.cuda.is_initialized() else None

    def call() -> R:
        with torch.cuda.stream(stream):
            return function(*arguments)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()
