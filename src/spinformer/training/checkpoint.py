"""The state of a training run on file: written atomically, and refused if it belongs to another run."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer._base.files import atomic_write


class Checkpoint:
    """The file that a run is resumed from.

    path: the file; with None nothing is written or read. run: what decides the run's result, as plain values: its
    settings, a fingerprint of its data, its model.
    """

    def __init__(self, path: Path | None, run: Mapping[str, Any]) -> None:
        self.path = path
        self.run: dict[str, Any] = json.loads(json.dumps(run))

    def write(self, state: Mapping[str, Any]) -> None:
        """Replace the file by `state`: tensors and plain values, by name."""
        if self.path is not None:
            with atomic_write(self.path) as partial:
                torch.save({"run": json.dumps(self.run), **state}, partial)

    def read(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """The state on file, its tensors on `device`; None if there is no file; an error if it is of another run."""
        if self.path is None or not self.path.is_file():
            return None
        state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=True)
        try:
            run = json.loads(state.pop("run"))
        except (KeyError, json.JSONDecodeError):
            raise ValueError(f"{self.path} was not written by this version; remove it to begin anew") from None
        differing = differences(run, self.run)
        if differing:
            raise ValueError(f"{self.path} belongs to another run; these differ: {', '.join(differing)}")
        return state

    @contextmanager
    def written_on_interrupt(self, state: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """Write state() if Ctrl-C ends the block, then stop as Ctrl-C does."""
        try:
            yield
        except KeyboardInterrupt:
            self.write(state())
            raise


def differences(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The names whose values differ, those inside mappings with dots: ["options.seed", "texts"]."""
    names: list[str] = []
    for name in dict.fromkeys([*other, *one]):
        first, second = one.get(name), other.get(name)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            names += differences(first, second, f"{prefix}{name}.")
        elif first != second:
            names.append(prefix + name)
    return names


def tensor_fingerprint(tensor: Tensor) -> str:
    """sha256 of a tensor's shape and values."""
    digest = hashlib.sha256(repr((tuple(tensor.shape), tensor.dtype)).encode())
    digest.update(tensor.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()
