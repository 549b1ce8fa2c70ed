"""Images as tensors in 0..1, from many formats.

`load_images(source)` understands: "sample" (8,000 + 2,000 MNIST images inside the package); a folder with MNIST's
idx files; an .npz with arrays `train` and `test` (or `x_train`, `x_test`, as Keras has it); a folder with
Parquet files named train* and test*, as the Hugging Face Hub stores MNIST; "hub:NAME" through `datasets`;
a folder of equally sized pictures, of which a tenth, drawn at random, becomes the test part.
"""

import hashlib
import io
import struct
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spinformer._base.extras import require
from spinformer._base.files import regular, sha256
from spinformer.data.unpacking import GZIP_ERRORS, check_unpacked, open_binary

Bytes = NDArray[np.uint8]
MAX_PIXELS = 1 << 24  # of one picture
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class Images:
    """`train` and `test` (n, C, H, W) in 0..1, with where they came from."""

    name: str
    train: Tensor
    test: Tensor
    digests: dict[str, str]

    def __post_init__(self) -> None:
        train, test = tuple(self.train.shape[1:]), tuple(self.test.shape[1:])
        if train != test:
            raise ValueError(f"{self.name}: training images are {train} (channels, height, width), test images {test}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
        channels, height, width = self.train.shape[1:]
        return channels, height, width

    def cut(self, train: int | None, test: int | None = None) -> "Images":
        """The first `train` and `test` images of each part."""
        for part, count in ((self.train, train), (self.test, test)):
            if count is not None and not 0 < count <= len(part):
                raise ValueError(f"expected 1 to {len(part)} images of {self.name}; got {count}")
        return Images(self.name, self.train[:train], self.test[:test], self.digests)


def load_images(source: str) -> Images:
    """The images that `source` names, in one of the forms above."""
    if source == "sample":
        with as_file(files("spinformer.data") / "mnist" / "sample.npz") as path:
            return _npz(path, "MNIST sample")
    if source.startswith("hub:"):
        return _hub(source.removeprefix("hub:"))
    path = Path(source)
    if path.is_file() and path.suffix == ".npz":
        return _npz(path, path.stem)
    if not path.is_dir():
        raise FileNotFoundError(f"no images at {source!r}; expected 'sample', 'hub:NAME', an .npz file or a folder")
    if _idx_files(path):
        return _idx(path)
    if list(path.rglob("*.parquet")):
        return _parquet(path)
    return _pictures(path)


def read_idx(path: Path) -> Bytes:
    """An idx file of bytes, gzipped or not."""
    try:
        with open_binary(path) as file:
            raw = file.read()
    except GZIP_ERRORS as error:
        raise ValueError(f"{path.name} is not a complete gzip file: {error}") from None
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path.name} is not an idx file of bytes (its first bytes are {raw[:4].hex()})")
    if len(raw) < 4 + 4 * raw[3]:
        raise ValueError(f"{path.name} ends within its header of {4 + 4 * raw[3]} bytes")
    shape = struct.unpack(f">{raw[3]}I", raw[4 : 4 + 4 * raw[3]])
    body = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
    if body.size != np.prod(shape):
        raise ValueError(f"{path.name} says it holds {shape} bytes, but {body.size} follow")
    return body.reshape(shape)


def to_unit(pixels: NDArray[Any], name: str) -> Tensor:
    """Bytes (n, H, W) or (n, H, W, C), or floats in 0..1, as a tensor (n, C, H, W) in 0..1."""
    if pixels.ndim == 3:
        pixels = pixels[..., None]
    if pixels.ndim != 4 or not len(pixels):
        raise ValueError(f"{name}: expected images (n, H, W) or (n, H, W, C), got an array {pixels.shape}")
    tensor = torch.from_numpy(np.array(pixels.transpose(0, 3, 1, 2), order="C"))
    if tensor.dtype == torch.uint8:
        return tensor.float() / 255
    tensor = tensor.float()
    if not torch.isfinite(tensor).all() or tensor.min() < 0 or tensor.max() > 1:
        low, high = tensor.min().item(), tensor.max().item()
        raise ValueError(f"{name}: expected bytes or values in 0..1, got {low:.4g} to {high:.4g}")
    return tensor


def _idx_files(folder: Path) -> dict[str, Path]:
    patterns = {"train": "train-images*idx3-ubyte*", "test": "t10k-images*idx3-ubyte*"}
    return {part: min(folder.glob(pattern)) for part, pattern in patterns.items() if list(folder.glob(pattern))}


def _idx(folder: Path) -> Images:
    paths = _idx_files(folder)
    if set(paths) != {"train", "test"}:
        raise FileNotFoundError(f"{folder} has {sorted(p.name for p in paths.values())}; both idx files are needed")
    parts = {part: to_unit(read_idx(path), path.name) for part, path in paths.items()}
    return Images(folder.name, parts["train"], parts["test"], {p.name: sha256(p) for p in paths.values()})


def _npz(path: Path, name: str) -> Images:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path.name} is not a complete .npz file")
    try:
        return _arrays(path, name)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, NotImplementedError, struct.error) as error:
        raise ValueError(f"{path.name} is damaged ({' '.join(str(error).split())})") from error


def _arrays(path: Path, name: str) -> Images:
    with zipfile.ZipFile(path) as archive:
        check_unpacked(path.name, sum(part.file_size for part in archive.infolist()), path.stat().st_size)
    with np.load(path) as arrays:
        for train, test in (("train", "test"), ("x_train", "x_test")):
            if train in arrays and test in arrays:
                parts = [to_unit(arrays[key], f"{path.name}:{key}") for key in (train, test)]
                return Images(name, parts[0], parts[1], {path.name: sha256(path)})
        raise ValueError(f"{path.name}: expected arrays train and test (or x_train and x_test), got {arrays.files}")


def _parquet(folder: Path) -> Images:
    parquet = require("pyarrow.parquet", extra="images")
    parts = {}
    digests: dict[str, str] = {}
    for part in ("train", "test"):
        paths = sorted(folder.rglob(f"{part}*.parquet"))
        if not paths:
            raise FileNotFoundError(f"{folder} has no {part}*.parquet")
        cells = [cell for path in paths for cell in parquet.read_table(path, columns=["image"])["image"].to_pylist()]
        parts[part] = _decode([cell["bytes"] for cell in cells], f"{part}*.parquet")
        digests |= {path.name: sha256(path) for path in paths}
    return Images(folder.name, parts["train"], parts["test"], digests)


def _hub(name: str) -> Images:
    datasets = require("datasets", extra="images")
    parts = datasets.load_dataset(name)
    missing = {"train", "test"} - set(parts)
    if missing:
        raise ValueError(f"{name} has the parts {sorted(parts)}, not {sorted(missing)}")
    column = next((c for c in ("image", "img") if c in parts["train"].column_names), None)
    if column is None:
        raise ValueError(f"{name}: expected a column image or img, got {parts['train'].column_names}")
    tensors = {p: to_unit(np.stack([np.asarray(i) for i in parts[p][column]]), name) for p in ("train", "test")}
    return Images(name, tensors["train"], tensors["test"], {})


def _pictures(folder: Path) -> Images:
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES)
    if len(paths) < 2:
        raise FileNotFoundError(f"{folder} has neither idx nor Parquet files nor two pictures ({', '.join(PICTURES)})")
    contents = [regular(path).read_bytes() for path in paths]
    pixels = _decode(contents, folder.name, [p.name for p in paths])
    held_out = max(1, len(pixels) // 10)
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
    digest = hashlib.sha256(b"".join(hashlib.sha256(c).digest() for c in contents)).hexdigest()
    return Images(folder.name, pixels[order[held_out:]], pixels[order[:held_out]], {folder.name: digest})


def _decode(contents: list[bytes], name: str, labels: list[str] | None = None) -> Tensor:
    pillow = require("PIL.Image", extra="images")
    arrays = []
    for k, content in enumerate(contents):
        label = labels[k] if labels else f"image {k}"
        try:
            with warnings.catch_warnings(action="ignore"), pillow.open(io.BytesIO(content)) as picture:
                if picture.width * picture.height > MAX_PIXELS:
                    raise ValueError(f"{picture.width} x {picture.height} pixels, more than {MAX_PIXELS:,}")
                arrays.append(np.asarray(picture.convert("L" if picture.mode in ("1", "L", "I;16") else "RGB")))
        except (OSError, SyntaxError, ValueError, EOFError, pillow.DecompressionBombError) as error:
            raise ValueError(f"{name}: {label} is damaged, or no picture ({error})") from error
        if arrays[k].shape != arrays[0].shape:
            raise ValueError(f"{name}: {label} has shape {arrays[k].shape}, the first picture {arrays[0].shape}")
    return to_unit(np.stack(arrays), name)
