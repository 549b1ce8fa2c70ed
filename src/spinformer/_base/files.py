"""Files: written completely or not at all, even if the writer is killed; and their digests."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: Path, *, many: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`, which replaces `path` when the block ends without an error.

    Missing folders are made. many: several processes may write the same content at once; the last one stays.
    """
    path = path.resolve()  # a link stays a link
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe or a terminal cannot be replaced
        yield path
        return
    partial = path.with_name(f"{path.name}.partial" + (f"-{os.getpid()}" if many else ""))
    try:
        yield partial
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def sha256(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
