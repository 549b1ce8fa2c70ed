"""Files of images that are not what they seem are refused by name."""

import gzip
import struct

import numpy as np
import pytest
import torch

from spinformer.data import images as data

PIXELS = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def idx(shape: tuple[int, ...], body: bytes, kind: bytes = b"\x08") -> bytes:
    return b"\x00\x00" + kind + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + body


def test_npz_errors(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, pictures=PIXELS, labels=np.arange(2))
    with pytest.raises(ValueError, match=r"a\.npz: expected arrays train and test .* got \['pictures', 'labels'\]"):
        data.load_images(str(path))
    np.savez(path, train=PIXELS.astype(np.float32), test=PIXELS)
    with pytest.raises(ValueError, match=r"a\.npz:train: expected bytes or values in 0\.\.1, got 0 to 23"):
        data.load_images(str(path))
    np.savez(path, train=np.full((2, 3, 4), np.nan), test=PIXELS)
    with pytest.raises(ValueError, match="got nan to nan"):
        data.load_images(str(path))
    np.savez(path, train=PIXELS[0], test=PIXELS)
    with pytest.raises(ValueError, match=r"got an array \(3, 4\)"):
        data.load_images(str(path))
    np.savez(path, train=PIXELS[:0], test=PIXELS)
    with pytest.raises(ValueError, match="expected images"):
        data.load_images(str(path))
    np.savez(path, train=PIXELS, test=PIXELS[:, :2])
    with pytest.raises(ValueError, match=r"training images are \(1, 3, 4\) .* test images \(1, 2, 4\)"):
        data.load_images(str(path))
    np.savez(path, train=PIXELS / 255, test=PIXELS)
    assert torch.allclose(data.load_images(str(path)).train, data.load_images(str(path)).test)


def test_idx_errors(tmp_path):
    train, test = tmp_path / "train-images-idx3-ubyte", tmp_path / "t10k-images-idx3-ubyte"
    train.write_bytes(idx((2, 3, 4), PIXELS.tobytes()))
    with pytest.raises(FileNotFoundError, match="both idx files are needed"):
        data.load_images(str(tmp_path))
    test.write_bytes(idx((2, 3, 4), PIXELS.tobytes(), kind=b"\x0d"))
    with pytest.raises(ValueError, match=r"t10k-images-idx3-ubyte is not an idx file of bytes .* 00000d03"):
        data.load_images(str(tmp_path))
    test.write_bytes(b"\x00")
    with pytest.raises(ValueError, match="is not an idx file of bytes"):
        data.load_images(str(tmp_path))
    test.write_bytes(idx((2, 3, 4), PIXELS.tobytes()[:-1]))
    with pytest.raises(ValueError, match=r"says it holds \(2, 3, 4\) bytes, but 23 follow"):
        data.load_images(str(tmp_path))
    test.write_bytes(idx((2, 3, 4), PIXELS.tobytes()))
    assert torch.equal(data.load_images(str(tmp_path)).test, torch.from_numpy(PIXELS)[:, None] / 255)
    train.write_bytes(idx((2, 3, 4), b"")[:9])
    with pytest.raises(ValueError, match="train-images-idx3-ubyte ends within its header of 16 bytes"):
        data.load_images(str(tmp_path))


def test_a_folder_without_images(tmp_path):
    (tmp_path / "notes.txt").write_text("none here")
    with pytest.raises(FileNotFoundError, match="neither idx nor Parquet files nor two pictures"):
        data.load_images(str(tmp_path))


def test_damaged_archives(tmp_path):
    whole = gzip.compress(b"\x00\x00\x08\x03" + bytes(12))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(whole[:-9])
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(whole)
    with pytest.raises(ValueError, match="not a complete gzip file"):
        data.load_images(str(tmp_path))
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(ValueError, match=r"cut\.npz is not a complete \.npz file"):
        data.load_images(str(tmp_path / "cut.npz"))
