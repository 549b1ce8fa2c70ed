"""The state of a training run on file: written atomically, and refused if it belongs to another run.

The state before the last is kept beside it, for the case that the last one is damaged.
"""

import hashlib
import json
import pickle
import sys
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
        """Replace the file by `state`: tensors and plain values, by name; the former one becomes the one before."""
        if self.path is not None:
            with atomic_write(self.path) as partial:
                try:
                    torch.save({"run": json.dumps(self.run), **state}, partial)
                except RuntimeError as error:  # as torch calls it where the disk is full
                    raise OSError(f"{self.path} cannot be written ({' '.join(str(error).split())[:120]})") from error
                if self.path.is_file():
                    self.path.replace(previous_path(self.path))

    def remove(self) -> None:
        """Delete the file and the one before."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            previous_path(self.path).unlink(missing_ok=True)

    def read(self, device: torch.device | str = "cpu") -> dict[str, Any] | None:
        """The state on file, its tensors on `device`; None if there is no file; an error if it is of another run.

        Where the file is damaged, the state before it, which is said on standard error; an error if there is none.
        """
        if self.path is None:
            return None
        paths = [path for path in (self.path, previous_path(self.path)) if path.is_file()]
        if not paths:
            return None
        for path in paths:
            try:
                return self._read(path, device)
            except _DamagedError as error:
                reason = error
            if path != paths[-1]:
                print(f"{reason}; the run goes on from {paths[-1]}", file=sys.stderr)
        raise ValueError(f"{reason}; remove it to begin anew")

    def _read(self, path: Path, device: torch.device | str) -> dict[str, Any]:
        try:
            state = torch.load(path, map_location=device, weights_only=True)
        except (RuntimeError, EOFError, pickle.UnpicklingError, KeyError, ValueError, AttributeError) as error:
            raise _DamagedError(f"{path} is damaged ({' '.join(str(error).split())[:80]})") from error
        try:
            run = json.loads(state.pop("run"))
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
            raise ValueError(f"{path} was not written by this version; remove it to begin anew") from None
        differing = differences(run, self.run)
        if differing:
            raise ValueError(f"{path} belongs to another run; these differ: {', '.join(differing)}")
        loaded: dict[str, Any] = state
        return loaded

    @contextmanager
    def written_on_interrupt(self, state: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
        """Write state() if Ctrl-C ends the block, then stop as Ctrl-C does."""
        try:
            yield
        except KeyboardInterrupt:
            self.write(state())
            raise


class _DamagedError(Exception):
    """A file that cannot be read."""


def previous_path(path: Path) -> Path:
    """The file with the state before the one in `path`."""
    return path.with_name(f"{path.name}.previous")


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
