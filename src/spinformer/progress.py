"""Progress bars for long work."""

from collections.abc import Iterable
from typing import TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")


def progress(items: Iterable[T], label: str, total: int | None = None, delay: float = 0.0) -> Iterable[T]:
    """Iterate over `items` under a bar, shown after `delay` seconds; total: how many there are, where they cannot be
    counted beforehand.
    """
    options = {"mininterval": 0.5, "dynamic_ncols": True, "leave": False, "delay": delay}
    bar: Iterable[T] = tqdm(items, desc=label, total=total, **options)
    return bar
