"""Forged files of binary formats: what lies in a header, weights that are no numbers, archives that never end, code."""

import copy
import gzip
import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from research.torture.damage import Damage, Malice, odd_value

BOMB = 3 << 29  # bytes that a small archive unpacks to


def _tensors(change: Callable[[dict[str, Any], bytearray, random.Random], None]) -> Damage:
    """Damage to the header and the numbers of a safetensors file; the header may lie afterwards."""

    def damage(path: Path, draw: random.Random) -> None:
        content = path.read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        header, numbers = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
        change(header, numbers, draw)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(numbers))

    return damage


def _pick(header: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The entry of a tensor that is not empty."""
    entries = [header[name] for name in header if name != "__metadata__"]
    return draw.choice([entry for entry in entries if entry["data_offsets"][1] > entry["data_offsets"][0]])


def _fill(*numbers: float) -> Callable[[dict[str, Any], bytearray, random.Random], None]:
    """Numbers of a tensor become one of these: one of them, or all."""

    def change(header: dict[str, Any], content: bytearray, draw: random.Random) -> None:
        floats = [name for name in header if header[name].get("dtype") == "F32"]
        entry = header[draw.choice(floats)] if floats else _pick(header, draw)
        start, stop = entry["data_offsets"]
        piece = struct.pack("<f", draw.choice(numbers))
        if draw.random() < 0.5:
            place = start + 4 * draw.randrange(max(1, (stop - start) // 4))
            content[place : place + 4] = piece
        else:
            content[start:stop] = (piece * ((stop - start) // 4 + 1))[: stop - start]

    return change


def _shape(header: dict[str, Any], content: bytearray, draw: random.Random) -> None:
    """The same numbers in another shape."""
    entry = _pick(header, draw)
    count = 1
    for side in entry["shape"]:
        count *= side
    entry["shape"] = draw.choice(
        ([count], [1, *entry["shape"]], entry["shape"][::-1], [count, 1, 1], [1] * 70 + [count])
    )


def _offsets(header: dict[str, Any], content: bytearray, draw: random.Random) -> None:
    entry = _pick(header, draw)
    odd = ([0, 2**62], [-4, 4], [8, 0], [len(content) - 4, len(content) + 400], entry["data_offsets"][::-1], [0], "0")
    entry["data_offsets"] = draw.choice(odd)


def _huge(header: dict[str, Any], content: bytearray, draw: random.Random) -> None:
    _pick(header, draw)["shape"] = draw.choice(([2**40], [2**31, 2**31], [2**63], [0, 2**40], [10**30]))


def _kind(header: dict[str, Any], content: bytearray, draw: random.Random) -> None:
    """The same bytes called numbers of another type."""
    entry = _pick(header, draw)
    entry["dtype"] = draw.choice(("I32", "U32", "F99", "BOOL", "F16", "BF16", "F64", 7))


def _drop(header: dict[str, Any], content: bytearray, draw: random.Random) -> None:
    names = [name for name in header if name != "__metadata__"]
    name = draw.choice(names)
    entry = header.pop(name)
    if draw.random() < 0.5:
        header[draw.choice((f"{name}x", "", "x" * 10_000, "../x", "\x00"))] = entry


def _notes(header: dict[str, Any], content: bytearray, draw: random.Random) -> None:
    """One of the texts in the header is another one; where it is JSON, one value within it."""
    notes = header.setdefault("__metadata__", {"format": "pt"})
    name = draw.choice(list(notes))
    try:
        notes[name] = json.dumps(odd_value(json.loads(notes[name]), draw))
    except json.JSONDecodeError:
        notes[name] = draw.choice(("", "tf", "x" * 100_000, "\x00", "{}"))


def _converted(kind: str) -> Damage:
    """The same numbers, honestly stored in another type."""

    def damage(path: Path, draw: random.Random) -> None:
        import torch
        from safetensors import safe_open
        from safetensors.torch import save_file

        with safe_open(path, framework="pt") as file:
            notes, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        save_file({name: tensor.to(getattr(torch, kind)) for name, tensor in tensors.items()}, path, metadata=notes)

    return damage


def _header_length(path: Path, draw: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(struct.pack("<Q", draw.choice((0, 1, 2**32, 2**63, 2**64 - 1, len(content)))) + content[8:])


TENSORS: dict[str, Damage] = {
    "no numbers": _tensors(_fill(float("nan"), float("inf"), -float("inf"))),
    "enormous numbers": _tensors(_fill(3e38, -3e38, 1e30)),
    "other shapes": _tensors(_shape),
    "lying offsets": _tensors(_offsets),
    "lying sizes": _tensors(_huge),
    "lying types": _tensors(_kind),
    "lost tensors": _tensors(_drop),
    "odd notes": _tensors(_notes),
    "more odd notes": _tensors(_notes),
    "lying length": _header_length,
    "float64": _converted("float64"),
    "int64": _converted("int64"),
}


def _bomb(path: Path, draw: random.Random) -> None:
    """Gzip members that unpack to one endless line, or to blank lines, perhaps after the good ones."""
    lines = gzip.decompress(path.read_bytes())
    piece = draw.choice((b"w", b"\n", b"\x00")) * (1 << 24)
    member = gzip.compress(piece, 6)
    start = gzip.compress(lines) if draw.random() < 0.5 else b""
    path.write_bytes(start + member * (BOMB // len(piece)))


def _unpacked(change: dict[str, Damage]) -> dict[str, Damage]:
    """The same damage to what a gzip file holds."""

    def within(damage: Damage) -> Damage:
        def outer(path: Path, draw: random.Random) -> None:
            path.write_bytes(gzip.decompress(path.read_bytes()))
            damage(path, draw)
            path.write_bytes(gzip.compress(path.read_bytes()))

        return outer

    return {f"{name}, zipped": within(damage) for name, damage in change.items()}


def _plain(path: Path, draw: random.Random) -> None:
    path.write_bytes(gzip.decompress(path.read_bytes()))


def _twice(path: Path, draw: random.Random) -> None:
    path.write_bytes(gzip.compress(path.read_bytes()))


def gzipped(within: dict[str, Damage]) -> dict[str, Damage]:
    """Damage to a gzip file; within: what may be done to what it holds."""
    return {"bomb": _bomb, "not zipped": _plain, "zipped twice": _twice, **_unpacked(within)}


def _state(change: Callable[[dict[str, Any], random.Random], Any]) -> Damage:
    """Damage to what torch.save wrote."""

    def damage(path: Path, draw: random.Random) -> None:
        import torch

        torch.save(change(torch.load(path, weights_only=False), draw), path)

    return damage


def _odd_state(state: Any, draw: random.Random) -> Any:
    """One part of a state is another one: plain values as in JSON; tensors of other shapes, types or numbers."""
    import torch

    state = copy.deepcopy(state)
    container, key = state, None
    while isinstance(container, dict | list) and len(container) and (key is None or draw.random() < 0.8):
        parent, key = container, draw.choice(list(container) if isinstance(container, dict) else range(len(container)))
        container = parent[key]
    if key is None:
        return []
    if not isinstance(container, torch.Tensor):
        odd = odd_value({"value": container if isinstance(container, str | int | float | bool) else None}, draw)
        parent[key] = odd.get("value", {})
    else:
        changed = container.double()
        parent[key] = draw.choice(
            (
                changed * float("nan"),
                changed.flatten()[:1],
                changed.bool(),
                changed.new_zeros(3, 5),
                None,
                changed * 1e300,
            )
        )
    return state


def _legacy(path: Path, draw: random.Random) -> None:
    path.write_bytes(pickle.dumps(Malice(), protocol=2))


STATE: dict[str, Damage] = {
    "odd value": _state(_odd_state),
    "another odd value": _state(_odd_state),
    "one more odd value": _state(_odd_state),
    "malice": _state(lambda state, draw: {**state, "step": Malice()} if isinstance(state, dict) else Malice()),
    "malice alone": _state(lambda state, draw: Malice()),
    "legacy malice": _legacy,
    "a list": _state(lambda state, draw: [1, 2]),
    "no keys": _state(lambda state, draw: {}),
}


def _arrays(change: Callable[[dict[str, Any], random.Random], dict[str, Any]]) -> Damage:
    """Damage to the arrays of an .npz."""

    def damage(path: Path, draw: random.Random) -> None:
        import numpy as np

        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files}
        np.savez_compressed(path, **change(arrays, draw))

    return damage


def _odd_array(arrays: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    import numpy as np

    name = draw.choice(list(arrays))
    floats = arrays[name].astype(np.float64) / 255
    cells = np.array([{}, Malice()], dtype=object)
    odd = (floats * np.nan, floats + 1, floats[:0], floats[0, 0], floats[..., None, None], floats.astype("c16"))
    more = (floats.astype("U9"), cells, floats[:, :5], np.zeros((4, 0, 8)), floats.astype(bool), floats.astype("M8[s]"))
    return arrays | {name: draw.choice((*odd, *more))}


def _npz_bomb(path: Path, draw: random.Random) -> None:
    """An .npz of black images, a thousand times as large as its file."""
    import numpy as np

    header = io.BytesIO()
    images = BOMB // 64
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (images, 8, 8)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("train.npy", "test.npy"):
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(header.getvalue())
                for _ in range(images * 64 // (1 << 24) if name == "train.npy" else 1):
                    file.write(bytes(1 << 24))


ARRAYS: dict[str, Damage] = {
    "odd array": _arrays(_odd_array),
    "another odd array": _arrays(_odd_array),
    "one more odd array": _arrays(_odd_array),
    "an array lost": _arrays(lambda arrays, draw: dict(list(arrays.items())[1:])),
    "other names": _arrays(lambda arrays, draw: {f"../{name}": array for name, array in arrays.items()}),
    "bomb": _npz_bomb,
}
