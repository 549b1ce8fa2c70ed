"""Progress bars for long work."""

from collections.abc import Iterable
from typing import TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")


def progress(
    items: Iterable[T], label: str, total: int | None = None, done: int = 0, delay: float = 0.0
) -> Iterable[T]:
    """Iterate over `items` under a bar, shown after `delay` seconds; total: how many there are, where they cannot be
    counted beforehand; done: how many of them were before.
    """
    options = {"initial": done, "mininterval": 0.5, "dynamic_ncols": True, "leave": False, "delay": delay}
    bar: Iterable[T] = tqdm(items, desc=label, total=total, **options)
    return bar
