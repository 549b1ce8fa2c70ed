"""Files that are there whole or not at all, whenever their writer is killed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: Path, *, many: bool = False) -> Iterator[Path]:
    """Where to write: a file beside `path`, which takes its place once all of it is written. Folders are made.

    many: several processes may write it at once, each the same; the last one's stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial" + (f"-{os.getpid()}" if many else ""))
    yield partial
    partial.replace(path)
