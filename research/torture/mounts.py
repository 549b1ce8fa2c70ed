"""A small disk for one command: full or read-only at will, as real as the system allows.

Where file systems may be mounted, it is one in memory, seen by this process and its children alone. Elsewhere a full
disk is a limit on the size of every file, and a read-only one is a folder without the permission to write.
"""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NEW_NAMESPACE = 0x00020000
READ_ONLY, REMOUNT, RECURSIVE, PRIVATE, DETACH = 1, 32, 1 << 14, 1 << 18, 2
ROOM = 256 << 20  # bytes where there is room


def own_mounts() -> bool:
    """Give this process its own list of mounts; whether the system allows that."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare") or libc.unshare(NEW_NAMESPACE) != 0:
        return False
    return bool(libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None) == 0)


class Disk:
    """The folder `path`, which must be empty; mounted: whether it is a file system of its own."""

    def __init__(self, path: Path, *, mounted: bool) -> None:
        self.path, self.mounted = path, mounted
        self.step: Callable[[], None] = _nothing  # for a child, before its command

    @contextmanager
    def attached(self) -> Iterator["Disk"]:
        """Within the block the disk is there, with room."""
        if self.mounted:
            self._mount(0, ROOM)
        try:
            yield self
        finally:
            self.make_room()
            if self.mounted:
                ctypes.CDLL(None).umount2(os.fsencode(self.path), DETACH)

    def fill(self, free: int) -> None:
        """Leave so many bytes; without a file system of its own, so many for each file."""
        if self.mounted:
            usage = shutil.disk_usage(self.path)
            self._mount(REMOUNT, max(usage.used + free, 4096))  # 0 would be no limit
        else:
            self.step = lambda: _limit_files(free)

    def forbid(self, *, by_permission: bool) -> None:
        """Let nothing be written."""
        if self.mounted and not by_permission:
            self._mount(REMOUNT | READ_ONLY, ROOM)
        else:
            for path in (self.path, *self.path.rglob("*")):
                if path.is_dir():
                    path.chmod(0o500)

    def make_room(self) -> None:
        """Let everything be written again."""
        self.step = _nothing
        if self.mounted:
            with contextlib.suppress(OSError):
                self._mount(REMOUNT, ROOM)
        for path in (self.path, *self.path.rglob("*")):
            if path.is_dir():
                path.chmod(0o700)

    def _mount(self, flags: int, size: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"size={size // 4096 * 4}k,mode=700".encode()
        if libc.mount(b"tmpfs", os.fsencode(self.path), b"tmpfs", flags, options) != 0:
            raise OSError(ctypes.get_errno(), f"tmpfs of {size} bytes cannot be mounted at {self.path}")


def _nothing() -> None:
    pass


def _limit_files(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
