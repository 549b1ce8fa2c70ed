"""Files read within bounds: gzip unpacked no further than an honest file of its size goes, and lines that end."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from spinformer._base.files import regular

GZIP_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)
# What a file may unpack to: so many bytes, and for each of its own bytes so many more. Pictures that are almost empty
# need 120, deflate has no more than 1,032.
MARGIN, RATIO = 1 << 24, 250
MAX_LINE = 1 << 24  # bytes


def check_unpacked(name: str, unpacked: int, packed: int) -> None:
    """A ValueError where so few bytes unpack to so many that memory may not do; both numbers may be so far."""
    if unpacked > MARGIN + RATIO * packed:
        raise ValueError(f"{name} unpacks to more than {RATIO} times its size; if that is right, unpack it first")


class _Unpacked(io.RawIOBase):
    """The content of a gzip file, as long as it does not grow beyond measure."""

    def __init__(self, path: Path) -> None:
        self.name, self.packed, self.count = path.name, path.open("rb"), 0
        self.file = gzip.GzipFile(fileobj=self.packed)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self.file.readinto(buffer)
        self.count += count
        check_unpacked(self.name, self.count, self.packed.tell())
        return count

    def close(self) -> None:
        self.file.close()
        self.packed.close()
        super().close()


def open_binary(path: Path, *, zipped: bool | None = None) -> IO[bytes]:
    """A file opened for its bytes, unzipped where its name ends in .gz; a damaged one raises one of `GZIP_ERRORS`.

    zipped: whether it is gzipped, where its name does not say so.
    """
    regular(path)
    zipped = path.suffix.lower() == ".gz" if zipped is None else zipped
    return io.BufferedReader(_Unpacked(path), 1 << 16) if zipped else path.open("rb")


def bounded_lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The lines of a file, with their ends; one of more than MAX_LINE bytes is a ValueError."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise ValueError(f"{name}:{number}: expected lines of at most {MAX_LINE:,} bytes")
        yield line
