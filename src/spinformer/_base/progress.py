"""Progress bars for long work, and how long it takes."""

import os
from collections.abc import Iterable
from typing import Any, TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")
OPTIONS: dict[str, Any] = {"mininterval": 0.5, "dynamic_ncols": True}


def progress(
    items: Iterable[T], label: str, total: int | None = None, done: int = 0, delay: float = 0.0
) -> Iterable[T]:
    """Iterate over `items` under a bar.

    total: the number of items, where `len(items)` does not give it; done: how many came before these; delay: seconds
    before the bar is shown.
    """
    if os.environ.get("RANK", "0") != "0":  # of several processes the first shows how far they are
        return items
    bar: Iterable[T] = tqdm(items, desc=label, total=total, initial=done, leave=False, delay=delay, **OPTIONS)
    return bar


def progress_bar(
    total: int, label: str, *, unit: str = "step", done: int = 0, quiet: bool = False, leave: bool = False
) -> Any:
    """A tqdm bar for a loop that calls `update` and `set_postfix` itself.

    done: how many of `total` came before; leave: whether the bar stays when it is closed. Nothing is shown if `quiet`,
    or if the output is not a terminal and the bar would not stay.
    """
    disable = True if quiet else (False if leave else None)
    return tqdm(total=total, initial=done, desc=label, unit=unit, leave=leave, disable=disable, **OPTIONS)


def duration(seconds: float) -> str:
    """In the unit that people would use."""
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
