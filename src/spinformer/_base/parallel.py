"""Work on several processes: many texts over the machine's cores, or long runs, each in a process of its own."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

MIN_ROWS = 100_000  # rows that are worth the start of several processes

_function: Callable[[Any], Any]  # what a process of the pool computes


def parallel_map(function: Callable[[Part], Result], parts: Sequence[Part], *, processes: int) -> Iterator[Result]:
    """map(function, parts), in order, over this many forked processes.

    With one process, in a daemon and where there is no fork, it runs in this process. The function is not pickled, so
    it may be a closure; parts and results are pickled. It must not touch a GPU.
    """
    processes = 1 if multiprocessing.current_process().daemon else min(processes, len(parts))
    if processes < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(function, parts)
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, initializer=_set_function, initargs=(function,)) as pool:
        yield from pool.map(_call_function, parts)


def run_tasks(
    function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]], *, processes: int
) -> Iterator[tuple[int, Callable[[], Result]]]:
    """Run function(*task) for each task, this many at once, each in a fresh process with its share of the cores.

    Yields, as tasks end, the index of the task and a function that returns its result or raises its error. With one
    process the tasks run here, one after the other, when their results are called for. With several, function, tasks
    and results are pickled.
    """
    if processes == 1:
        for index, task in enumerate(tasks):
            yield index, partial(function, *task)
        return
    context = multiprocessing.get_context("spawn")
    threads = max(1, cores() // processes)
    pool = ProcessPoolExecutor(processes, context, initializer=_set_threads, initargs=(threads,), max_tasks_per_child=1)
    try:
        futures = {pool.submit(function, *task): index for index, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result
    finally:
        pool.shutdown(cancel_futures=True)  # if the caller stops early, tasks that have not begun are dropped


def workers(rows: int) -> int:
    """How many processes to use for this many rows: one per core, or 1 if the rows are few."""
    return cores() if rows >= MIN_ROWS else 1


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _set_function(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not survive a fork


def _call_function(part: Any) -> Any:
    return _function(part)


def _set_threads(count: int) -> None:
    import torch

    torch.set_num_threads(count)
