"""Files: written completely or not at all, even if the writer is killed or the power fails; their digests; locks."""

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

SAVING, LOCK = ".saving-", ".lock"  # the folder of files that are not whole yet, and the lock of who writes there


@contextmanager
def atomic_write(path: Path, *, many: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`, which replaces `path` when the block ends without an error.

    Missing folders are made. The content is on the disk before the name is given, and the file may be read by whom the
    user's umask allows. many: several processes may write the same content at once; the last one stays.
    """
    loop = f"{path} is a link that leads back to itself; expected a file to write"
    try:
        path = path.resolve()  # a link stays a link
    except RuntimeError as error:  # as Python before 3.13 says it
        raise OSError(loop) from error
    if path.is_symlink():
        raise OSError(loop)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; expected a file to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe or a device stays what it is
        with tempfile.TemporaryDirectory() as folder:
            partial = Path(folder) / path.name
            yield partial
            with partial.open("rb") as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
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


@contextmanager
def atomic_files(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, whose files replace those of the same names in `folder` when the block ends.

    All of them are written before the first is replaced; after an error none is. Weights are replaced last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(folder)
    with tempfile.TemporaryDirectory(prefix=SAVING, dir=folder) as name, FileLock(Path(name) / LOCK):
        written = Path(name)
        yield written
        files = [path for path in written.rglob("*") if path.is_file() and path.name != LOCK]
        for path in files:
            sync(path)
        for path in sorted(files, key=lambda path: (path.suffix == ".safetensors", path.name)):
            with atomic_write(folder / path.relative_to(written)) as partial:
                shutil.move(path, partial)


def _remove_abandoned(folder: Path) -> None:
    """Delete what writers left that were killed: nobody holds its lock."""
    for path in folder.glob(f"{SAVING}*"):
        try:
            with FileLock(path / LOCK, timeout=0):
                pass
        except Timeout:
            continue
        shutil.rmtree(path)


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


def regular(path: Path) -> Path:
    """`path`, to be read: what is there and is no file is a ValueError; a pipe or a device might be read for ever."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is {'a folder' if path.is_dir() else 'a pipe or a device'}; expected a file")
    return path


def json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; anything else is a ValueError that names the file."""
    try:
        content = json.loads(regular(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged, it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: expected a JSON object; got {type(content).__name__}")
    return content


def sha256(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with regular(path).open("rb") as file:
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
    file = path.with_name(f".{path.name}.lock") if is_file else path / LOCK
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
