"""Files: written completely or not at all, even if the writer is killed or the power fails; their digests; locks."""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def atomic_write(path: Path, *, many: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`, which replaces `path` when the block ends without an error.

    Missing folders are made. The content is on the disk before the name is given, and the file may be read by whom the
    user's umask allows. many: several processes may write the same content at once; the last one stays.
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
        partial.unlink(missing_ok=True)  # of a writer that was killed
        partial.touch()
        mode = partial.stat().st_mode
        yield partial
        partial.chmod(mode)  # some writers make files that only their owner can read
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def atomic_text(path: Path, text: str) -> Path:
    """Write a text as UTF-8, with plain line ends; its path."""
    with atomic_write(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")
    return path


def sync(path: Path) -> None:
    """Have the content of a file, or the names in a folder, written to the disk."""
    if os.name == "nt" and path.is_dir():
        return  # folders cannot be opened there
    handle = os.open(path, os.O_RDONLY if path.is_dir() or os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def run_lock(path: Path, *, is_file: bool = False) -> Iterator[None]:
    """Within the block no other run writes to `path`, a folder; one that tries to gets a BlockingIOError.

    is_file: `path` is a file. The lock is a hidden file, in the folder or beside the file, and ends with the process.
    Of the processes of one run, as torchrun numbers them, the first one holds it. A run may take its own lock again.
    """
    if os.environ.get("RANK", "0") != "0":
        yield
        return
    file = path.with_name(f".{path.name}.lock") if is_file else path / ".lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file.resolve(), timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(f"another run is writing to {path}; wait until it has ended, or name another") from None
    try:
        yield
    finally:
        lock.release()
