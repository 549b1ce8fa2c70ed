"""What is said beside the results: progress bars for long work, remarks, how long it takes; and how to say nothing."""

import os
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")
OPTIONS: dict[str, Any] = {"mininterval": 0.5, "dynamic_ncols": True}
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
# Is told how many items are done, and of how many, where that is known. What it raises ends the work.
Report = Callable[[int, int | None], None]
_REPORT: ContextVar[Report | None] = ContextVar("report", default=None)


@contextmanager
def silence() -> Iterator[None]:
    """No progress bars and no remarks inside the block."""
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


def is_quiet() -> bool:
    """Whether bars and remarks are silenced."""
    return _QUIET.get()


def remark(text: str) -> None:
    """Print a line that is no result: where a file lies, how long it will take."""
    if not is_quiet():
        print(text, flush=True)


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Inside the context, and in this thread alone, `progress` calls `report` before each item and draws no bar."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


def progress(
    items: Iterable[T], label: str, total: int | None = None, done: int = 0, delay: float = 0.0
) -> Iterable[T]:
    """Iterate over `items` under a bar, which is shown on terminals alone.

    total: the number of items, where `len(items)` does not give it; done: how many came before these; delay: seconds
    before the bar is shown.
    """
    report = _REPORT.get()
    if report is not None:
        return _reported(items, report, total, done)
    if os.environ.get("RANK", "0") != "0":  # of several processes the first shows how far they are
        return items
    bar: Iterable[T] = tqdm(
        items, desc=label, total=total, initial=done, leave=False, delay=delay, disable=_hidden(), **OPTIONS
    )
    return bar


def _reported(items: Iterable[T], report: Report, total: int | None, done: int) -> Iterator[T]:
    if total is None and isinstance(items, Sized):
        total = len(items)
    for count, item in enumerate(items, done):
        report(count, total)
        yield item


def progress_bar(
    total: int, label: str, *, unit: str = "step", done: int = 0, quiet: bool = False, leave: bool = False
) -> Any:
    """A tqdm bar for a loop that calls `update` and `set_postfix` itself.

    done: how many of `total` came before; leave: whether the bar stays when it is closed. Nothing is shown if `quiet`,
    or if standard error is not a terminal: a file has no use for the codes that move a bar.
    """
    return tqdm(total=total, initial=done, desc=label, unit=unit, leave=leave, disable=_hidden(quiet), **OPTIONS)


def _hidden(quiet: bool = False) -> bool | None:
    """As tqdm takes it: None is to hide the bar unless it would be on a terminal."""
    return True if quiet or is_quiet() else None


def duration(seconds: float) -> str:
    """In the unit that people would use."""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
