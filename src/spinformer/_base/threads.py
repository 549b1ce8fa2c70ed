"""Work of many small operations of torch, on several things at once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

# Threads at a time: more wait for each other, as Python runs one at a time.
MOST = 4


def thread_map(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """[function(item) for item in items], in as many threads as torch has, at most MOST, each on one core.

    Small operations gain nothing from several cores, or even lose. No gradients are recorded, unless the function asks
    for them itself. While it runs, torch has one thread.
    """
    threads = torch.get_num_threads()

    def call(item: Item) -> Result:
        with torch.no_grad():  # known to each thread alone
            return function(item)

    used = min(threads, len(items), MOST)
    if used < 2:
        return [call(item) for item in items]
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(used) as pool:
            return list(pool.map(call, items))
    finally:
        torch.set_num_threads(threads)
