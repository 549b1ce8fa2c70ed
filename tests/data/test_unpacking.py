"""Small files that unpack to enormous ones, lines without an end, pipes: refused at once, with little memory."""

import gzip
import os
import struct
import time
import zipfile
import zlib

import numpy as np
import pytest

from spinformer.data import unpacking
from spinformer.data.files import read_texts
from spinformer.data.images import load_images
from spinformer.data.unpacking import MAX_LINE, RATIO, bounded_lines, open_binary

GOOD = b'{"premise": "p", "hypothesis": "h", "label": "neutral"}\n'
MARGIN = 1 << 18  # bytes, a small one for quick tests
UNPACKS = f"unpacks to more than {RATIO} times its size; if that is right, unpack it first"


@pytest.fixture(autouse=True)
def _small_margin(monkeypatch):
    monkeypatch.setattr(unpacking, "MARGIN", MARGIN)


def fails(read, message):
    start = time.monotonic()
    with pytest.raises(ValueError, match=message) as raised:
        read()
    assert time.monotonic() - start < 60  # what is enormous is not read to its end
    assert "\n" not in str(raised.value)


def bomb(unit: bytes, size: int = 1 << 34) -> bytes:
    """Gzip members that unpack to `size` bytes."""
    return gzip.compress(unit * (1 << 24)) * (size >> 24)


@pytest.mark.parametrize(("name", "unit"), [("a.jsonl.gz", b"w"), ("a.jsonl.gz", b"\n"), ("a.csv.gz", b"\x00")])
def test_texts(tmp_path, unit, name):
    path = tmp_path / name
    start = GOOD if "json" in name else b"text,label\na,b\n"
    path.write_bytes(gzip.compress(start) + bomb(unit))
    fails(lambda: read_texts(path), rf"{name}(:2: expected lines of at most|:3: expected lines of at most| {UNPACKS})")


def test_honest_files_of_much_repetition_are_read(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress((b" " * 99 + b"\n") * (MARGIN // 200) + GOOD))
    assert len(read_texts(path)) == 1
    path.write_bytes(gzip.compress(GOOD) * 3)  # several members
    assert len(read_texts(path)) == 3


def test_a_line_without_an_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"short\n" + b"w" * (MAX_LINE - 1) + b"\n" + b"w" * (MAX_LINE + 9))
    with open_binary(path) as file:
        lines = bounded_lines(file, "a.txt")
        assert next(lines) == b"short\n"
        assert len(next(lines)) == MAX_LINE
        with pytest.raises(ValueError, match=rf"a\.txt:3: expected lines of at most {MAX_LINE:,} bytes"):
            next(lines)


def test_word_vectors(tmp_path):
    pytest.importorskip("transformers")
    from spinformer.models.baselines.vectors import read_vectors

    path = tmp_path / "vectors.txt.gz"
    path.write_bytes(gzip.compress(b"a 1 2\n") + bomb(b"w"))
    fails(lambda: read_vectors(path), rf"{UNPACKS}|expected lines of at most")  # which comes first depends on Python


def test_tables(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    places = pyarrow.array(np.zeros(3_000_000, np.int8))
    column = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(["one"]))
    parquet.write_table(pyarrow.table({"text": column, "label": column}), path)
    fails(lambda: read_texts(path), rf"a\.parquet {UNPACKS}")
    raw = pyarrow.array([b"\xff"], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"text": raw, "label": ["x"]}), path)
    fails(lambda: read_texts(path), r"a\.parquet is not a complete Parquet file: 'utf-8' codec")
    parquet.write_table(pyarrow.table([["a"], ["b"], ["x"]], names=["text", "text", "label"]), path)
    fails(lambda: read_texts(path), r"a\.parquet is not a complete Parquet file: .*text")


def test_images(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("train.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (1 << 20, 8, 8)})
        file.write(bytes(1 << 26))
    fails(lambda: load_images(str(path)), rf"a\.npz {UNPACKS}")
    folder = tmp_path / "idx"
    folder.mkdir()
    for name in ("train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"):
        (folder / name).write_bytes(gzip.compress(b"\x00\x00\x08\x03") + bomb(b"\x00"))
    fails(lambda: load_images(str(folder)), rf"train-images-idx3-ubyte\.gz {UNPACKS}")


def test_pictures_that_are_enormous(tmp_path):
    pytest.importorskip("PIL.Image")
    side = 9_000
    packer = zlib.compressobj()
    rows = b"".join(packer.compress(bytes(1 + side)) for _ in range(side)) + packer.flush()
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b""))
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(content)
    fails(lambda: load_images(str(tmp_path)), r"a\.png is damaged, or no picture \(9000 x 9000 pixels, more than")


@pytest.mark.skipif(os.name == "nt", reason="has no pipes in folders")
def test_pipes_are_not_waited_for(tmp_path):
    for name in ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match="is a pipe or a device; expected a file"):
        load_images(str(tmp_path))
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        os.mkfifo(folder / name)
    with pytest.raises(ValueError, match="is a pipe or a device; expected a file"):
        load_images(str(folder))
