"""Checks of what comes in. Every message says what was expected and what came.

Torch is imported by those that take tensors, when they are called: the command line checks its options without it.
"""

import math
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def choice(name: str, value: str, valid: Sequence[str]) -> None:
    """`value` is one of `valid`."""
    if not isinstance(value, str) or value not in valid:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, valid))}; got {value!r}")


def choice_or_function(name: str, value: object, valid: Sequence[str]) -> None:
    """`value` is one of `valid`, or can be called."""
    if not callable(value) and value not in valid:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, valid))}, or a function; got {value!r:.60}")


def instance(name: str, value: object, *kinds: type) -> None:
    """`value` is an object of one of these classes."""
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{name} must be of class {expected}; got {type(value).__name__}")


def items(name: str, value: object, *kinds: type) -> None:
    """`value` is a list, or another collection with a length, of objects of these classes."""
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        raise TypeError(f"{name} must be a list of {' or '.join(kind.__name__ for kind in kinds)}; got {value!r:.60}")
    for one in value:
        instance(f"each of {name}", one, *kinds)


def function(name: str, value: object) -> None:
    """`value` can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be a function; got {type(value).__name__}")


def number(name: str, value: object) -> None:
    """`value` is a real number; it may be NaN or infinite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {type(value).__name__}")


def finite_number(name: str, value: object) -> None:
    """`value` is a real number, neither NaN nor infinite."""
    number(name, value)
    if not -math.inf < value < math.inf:  # type: ignore[operator]
        raise ValueError(f"{name} must be finite; got {value}")


def flag(name: str, value: object) -> None:
    """`value` is true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false; got {value!r:.60}")


def integers(name: str, value: object, length: int, least: int) -> None:
    """`value` is a tuple of so many integers, none below `least`."""
    good = isinstance(value, tuple | list) and len(value) == length
    if not good or not all(type(one) is int and one >= least for one in value):  # type: ignore[attr-defined]
        raise ValueError(f"{name} must be {length} integers of at least {least}; got {value!r:.60}")


def positive_number(name: str, value: object) -> None:
    """`value` is a real number, finite and above zero."""
    number(name, value)
    if not 0 < value < math.inf:  # type: ignore[operator]
        raise ValueError(f"{name} must be finite and positive; got {value}")


def positive(name: str, value: "float | Tensor") -> None:
    """`value`, or each of its elements, is finite and above zero."""
    import torch

    if torch.compiler.is_compiling():
        return
    if isinstance(value, torch.Tensor):
        if value.is_complex() or value.dtype == torch.bool:
            raise TypeError(f"{name} must hold real numbers; got {value.dtype}")
        if _wait(value, lambda: value.detach().log().sum(), lambda: positive(name, value)):
            return
        if not (value.is_meta or bool(((value > 0) & (value < torch.inf)).all())):
            raise ValueError(f"{name} must be finite and positive; got {value}")
    else:
        positive_number(name, value)


def at_least(name: str, value: int, least: int) -> None:
    """`value` is an integer not below `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")


def seeds(name: str, values: Sequence[int]) -> None:
    """`values` are numbers from 0 on, no two alike."""
    if len(set(values)) < len(values) or min(values) < 0:
        raise ValueError(f"{name} must be numbers from 0 on that differ; got {' '.join(map(str, values))}")


def floating(name: str, tensor: "Tensor", dims: Sequence[int]) -> None:
    """`tensor` is a floating-point tensor with one of these numbers of dimensions."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor; got {type(tensor).__name__}")
    if not tensor.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers; got {tensor.dtype}")
    if tensor.dim() not in dims:
        expected = " or ".join(map(str, dims))
        raise ValueError(f"{name} must have {expected} dimensions; got shape {tuple(tensor.shape)}")


def same_type(name: str, tensor: "Tensor", dtype: "torch.dtype", whose: str) -> None:
    """`tensor` has this type; under autocast any floating-point type."""
    import torch

    if tensor.dtype != dtype and not (tensor.is_floating_point() and torch.is_autocast_enabled(tensor.device.type)):
        raise TypeError(f"{name} must be in the type of {whose}, {dtype}; got {tensor.dtype}")


def shape(name: str, tensor: "Tensor", expected: Sequence[int]) -> None:
    """`tensor` is a tensor of exactly this shape."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor; got {type(tensor).__name__}")
    if tuple(tensor.shape) != tuple(expected):
        raise ValueError(f"{name} must have shape {tuple(expected)}; got {tuple(tensor.shape)}")


def each(name: str, value: "float | Tensor", batch: int) -> None:
    """`value` is one number, or one for each of `batch` samples."""
    import torch

    if isinstance(value, torch.Tensor) and tuple(value.shape) not in ((), (1,), (batch,)):
        raise ValueError(f"{name} must be a number or have shape ({batch},); got {tuple(value.shape)}")


def finite(name: str, tensor: "Tensor", **origins: "Tensor") -> None:
    """No NaN and no infinity. Skipped while compiling: the look at the data would break the graph.

    origins: what the tensor was made of, blamed first where it is not finite.
    One pass over the data where all is well: a sum is finite only if every term is; elements are looked at one by one
    only where it is not (finite numbers may overflow it).
    """
    import torch

    if torch.compiler.is_compiling():
        return

    def total() -> "Tensor":
        return tensor.detach().sum(dtype=torch.promote_types(tensor.dtype, torch.float32))

    if _wait(tensor, total, lambda: finite(name, tensor, **origins)):
        return
    if not math.isfinite(total().item()) and not bool(torch.isfinite(tensor).all()):
        for origin, source in origins.items():
            finite(origin, source)
        bad = int((~torch.isfinite(tensor)).sum())
        raise ValueError(f"{name} must be finite; {bad} of {tensor.numel()} elements are NaN or infinite")


def mask(name: str, tensor: "Tensor | None", expected: Sequence[int], device: "torch.device") -> "Tensor | None":
    """`tensor` as booleans of this shape, each row with at least one true element; None stays None."""
    import torch

    if tensor is None:
        return None
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor; got {type(tensor).__name__}")
    if tensor.is_floating_point() or tensor.is_complex():
        raise TypeError(f"{name} must be boolean or 0/1 integers (true = a real token); got {tensor.dtype}")
    shape(name, tensor, expected)
    result = tensor.to(device=device, dtype=torch.bool)
    if not torch.compiler.is_compiling():
        _every_row(name, result)
    return result


def _every_row(name: str, rows: "Tensor") -> None:
    if _wait(rows, lambda: rows.sum(-1).log().sum(), lambda: _every_row(name, rows)) or bool(rows.any(-1).all()):
        return
    empty = (~rows.any(-1)).nonzero().flatten().tolist()
    raise ValueError(f"{name} has no token at all in row(s) {empty}; every row needs at least one")


class _Waiting(threading.local):
    """Of a thread: numbers that are not finite where a check may fail, and the checks themselves; None outside."""

    looks: "list[tuple[Tensor, Callable[[], None]]] | None" = None


_WAITING = _Waiting()


@contextmanager
def postponed() -> Iterator[None]:
    """Looks at what tensors on a GPU hold wait for the end of the block: there one wait for the device serves them all.

    Work is queued on the device meanwhile. In a CUDA graph, which allows no look, there is none.
    """
    if _WAITING.looks is not None:
        yield
        return
    _WAITING.looks = []
    try:
        yield
        looks = _WAITING.looks
    finally:
        _WAITING.looks = None
    if not looks:
        return
    import torch

    total = torch.stack([number for number, _ in looks]).sum()
    if not math.isfinite(total.item()):
        for _, check in looks:
            check()


def _wait(tensor: "Tensor", number: "Callable[[], Tensor]", check: Callable[[], None]) -> bool:
    """Whether the check is postponed. number: gives one number, not finite where the check may fail."""
    if _WAITING.looks is None or not tensor.is_cuda:
        return False
    from spinformer._base.recording import recording

    if not recording():
        _WAITING.looks.append((number().float(), check))
    return True
