"""The state of a training run on file: written atomically, and refused if it belongs to another run.

The state before the last is kept beside it, for the case that the last one is damaged.
"""

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from spinformer._base.files import atomic_write, regular


class Checkpoint:
    """The file that a run is resumed from.

    path: the file; with None nothing is written or read. run: what decides the run's result, as plain values: its
    settings, a fingerprint of its data, its model.
    """

    def __init__(self, path: Path | None, run: Mapping[str, Any]) -> None:
        self.path = None if path is None else regular(path)
        self.run: dict[str, Any] = json.loads(json.dumps(run))

    @property
    def present(self) -> bool:
        """Whether there is a file, or the one before."""
        return self.path is not None and (self.path.exists() or previous_path(self.path).exists())

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
        except OSError:
            raise
        except Exception as error:  # whatever torch and pickle make of noise
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
    def restoring(self) -> Iterator[None]:
        """Within the block, what the state on file lacks or has in another form is a ValueError that names the file."""
        try:
            yield
        except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{self.path} is damaged ({one_line(error)}); remove it to begin anew") from error

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


def one_line(error: Exception) -> str:
    """What an error says, shortly."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


def check_step(name: str, step: Any, last: int) -> int:
    """`step`, if it is one of a run that has `last` steps."""
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= last:
        raise ValueError(f"{name} must be from 0 to {last}; got {step!r:.20}")
    return step


def check_optimizer(optimizer: Optimizer, groups: Sequence[Mapping[str, Any]]) -> None:
    """A ValueError where a restored optimiser has other options than before, but for its rates, or tensors of other
    shapes than its parameters have; groups: its `param_groups` before.
    """
    for group, before in zip(optimizer.param_groups, groups, strict=True):
        rate = group["lr"]
        if not isinstance(rate, float | Tensor) or not math.isfinite(rate):
            raise ValueError(f"lr must be a finite number; got {rate!r:.20}")
        changed = [name for name in before if name not in ("params", "lr") and group.get(name) != before[name]]
        if changed:
            raise ValueError(f"its optimiser has another {changed[0]}")
    for parameter, values in optimizer.state.items():
        for name, value in values.items():
            if isinstance(value, Tensor) and tuple(value.shape) not in ((), tuple(parameter.shape)):
                raise ValueError(f"{name} must have shape {tuple(parameter.shape)}; got {tuple(value.shape)}")
            if not isinstance(value, Tensor | int | float | None) or (isinstance(value, Tensor) and not _finite(value)):
                raise ValueError(f"{name} must be finite numbers")


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor).all())


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
