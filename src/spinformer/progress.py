"""Progress bars for long work."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from tqdm.auto import tqdm

T = TypeVar("T")


def progress(items: Sequence[T], label: str) -> Iterable[T]:
    """Iterate over `items` under a bar; silent where the output is not a terminal for long enough to matter."""
    bar: Iterable[T] = tqdm(items, desc=label, mininterval=0.5, dynamic_ncols=True, leave=False)
    return bar
