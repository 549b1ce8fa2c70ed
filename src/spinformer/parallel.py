"""Work spread over processes: of many texts over the machine's cores, or of long runs each in a process of its own."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

MANY = 100_000  # rows

_work: Callable[[Any], Any]  # of a process of the pool


def spread(function: Callable[[Part], Result], parts: Sequence[Part], *, processes: int) -> Iterator[Result]:
    """map(function, parts), in order, by so many forked processes; here where 1 is enough or this one may not fork.

    The function is not pickled and may be a closure; parts and results are. It must not touch a GPU.
    """
    processes = 1 if multiprocessing.current_process().daemon else min(processes, len(parts))
    if processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(function, parts)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(function,)) as pool:
        yield from pool.map(_do, parts)


def separately(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], *, processes: int
) -> Iterator[tuple[int, Callable[[], Result]]]:
    """The place of each task, and what gives function(*task) or raises, as they end: so many at once, each in a fresh
    process with its share of the cores; where processes is 1, one after the other in this one, when it is asked for.

    Function, tasks and results are pickled where there are several processes.
    """
    if processes == 1:
        for place, task in enumerate(tasks):
            yield place, partial(function, *task)
        return
    context = multiprocessing.get_context("spawn")
    share = max(1, cores() // processes)
    pool = ProcessPoolExecutor(processes, context, initializer=_threads, initargs=(share,), max_tasks_per_child=1)
    try:
        futures = {pool.submit(function, *task): place for place, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result
    finally:
        pool.shutdown(cancel_futures=True)  # where one has failed and nobody asks for the others


def workers(rows: int) -> int:
    """Processes for so many rows: all cores, or 1 where that is not worth the forking."""
    return cores() if rows >= MANY else 1


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin(function: Callable[[Any], Any]) -> None:
    global _work
    _work = function
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not outlive a fork


def _threads(count: int) -> None:
    import torch

    torch.set_num_threads(count)


def _do(part: Any) -> Any:
    return _work(part)
