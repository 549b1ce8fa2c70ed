"""Bad arguments of every kind, and what must come of them: one line of our own that says what was expected."""

import ast
import math
import re
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

import spinformer
from tests.properties.cases import generator

SOURCE = Path(spinformer.__file__).parent
# A line says what was expected or what came.
SAYS = re.compile(
    r"\b(must|expected|needs?|got|unknown|no|not|only|at least|at most|cannot|given|name|is for|has|have|had)\b"
)
NAN, INF = math.nan, math.inf
PERHAPS = "perhaps"  # begins the name of a value that may be refused or accepted, but nothing else


class Rubbish:
    """An object that is nothing of ours."""

    def __repr__(self) -> str:
        return "rubbish"


@dataclass(frozen=True)
class Kind:
    """What an argument may not be. bad: makes pairs of a name and a value from a good value and a seed."""

    bad: Callable[[Any, int], Iterator[tuple[str, Any]]]


@dataclass(frozen=True)
class Call:
    """A public function or class with good arguments, and the kinds of those that can be bad.

    good: makes the arguments from a seed; the names of `kinds` are those of arguments.
    """

    name: str
    function: Callable[..., Any]
    good: Callable[[int], dict[str, Any]]
    kinds: dict[str, Kind] = field(default_factory=dict)

    def cases(self) -> Iterator[tuple["Call", str, str]]:
        """Every argument with the name of every bad value of it."""
        good = self.good(0)
        for argument, kind in self.kinds.items():
            for label, _ in kind.bad(good.get(argument), 0):
                yield self, argument, label

    def refuses(self, argument: str, label: str, number: int) -> str | None:
        """None if the call with this bad argument is refused as it should be; else what came instead."""
        good = self.good(number)
        value = dict(self.kinds[argument].bad(good.get(argument), number))[label]
        return refusal(lambda: self.function(**{**good, argument: value}), f"{self.name}({argument}: {label})")

    def __repr__(self) -> str:
        return self.name


def refusal(call: Callable[[], Any], what: str) -> str | None:
    """None if `call` raises a ValueError or TypeError of one line, by a `raise` of ours; else what came instead.

    A call whose name says PERHAPS may also give finite numbers.
    """
    try:
        result = call()
    except (ValueError, TypeError, FileNotFoundError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        text, where = str(error), f"{Path(last.filename).name}:{last.lineno}"
        if not Path(last.filename).is_relative_to(SOURCE) or last.lineno not in _raises(last.filename):
            return f"{what}: an error that is not ours, at {where}: {type(error).__name__}: {text!r:.150}"
        if not text.strip() or "\n" in text or len(text) > 1000:
            return f"{what}: the message is not one line: {text!r:.150}"
        return None if SAYS.search(text) else f"{what}: the message does not say what was expected: {text!r:.150}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{what}: {type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)!r:.150}"
    if PERHAPS not in what:
        return f"{what}: accepted; it gave {type(result).__name__}"
    spoilt = [one for one in _tensors(result) if one.is_floating_point() and not bool(torch.isfinite(one).all())]
    return f"{what}: accepted, but it gave numbers that are not finite" if spoilt else None


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, tuple | list):
        for part in result:
            yield from _tensors(part)


@lru_cache(maxsize=512)
def _raises(filename: str) -> frozenset[int]:
    """The lines of a file that belong to a `raise` with an error of its own."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(Path(filename).read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def _types(*also: tuple[str, Any]) -> list[tuple[str, Any]]:
    return [("a string", "rubbish"), ("an object", Rubbish()), *also]


def tensor(*fixed: int, finite: bool = True, optional: bool = False, dims: bool = True, empty: bool = False) -> Kind:
    """A floating-point tensor. fixed: dimensions whose size follows from the other arguments; empty: whether a tensor
    without elements is bad as well.
    """

    def bad(value: torch.Tensor, number: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("a list", value.tolist()), ("a number", 0.5))
        if not optional:
            yield "none", None
        yield "integers", value.detach().round().long()
        yield "booleans", value > 0
        yield "complex numbers", torch.complex(value.detach(), value.detach())
        if dims:
            yield "one dimension more", value[None, None, None]
            yield "a scalar", torch.zeros((), dtype=value.dtype)
        for dim in fixed:
            yield f"dimension {dim} shorter", value.narrow(dim, 0, value.shape[dim] - 1)
            yield f"dimension {dim} longer", torch.cat([value, value.narrow(dim, 0, 1)], dim)
        if empty:
            yield "no elements", value[:0]
        elif 0 not in fixed and value.dim() > 1:
            yield "perhaps no samples", value[:0]
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            yield f"perhaps {dtype}", value.detach().to(dtype)
        if finite:
            place = int(torch.randint(value.numel(), (), generator=generator(number)))
            for name, wrong in (("a NaN", NAN), ("an infinity", INF), ("a negative infinity", -INF)):
                spoilt = value.detach().clone().contiguous()
                spoilt.view(-1)[place] = wrong
                yield name, spoilt

    return Kind(bad)


def mask(optional: bool = True) -> Kind:
    """Booleans, true for what is there; (B, n) of the good value, at least one true in each row."""

    def bad(value: torch.Tensor, number: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("a list", value.tolist()), ("a number", 1))
        if not optional:
            yield "none", None
        yield "numbers with a point", value.float()
        yield "complex numbers", value.to(torch.complex64)
        yield "one column less", value[..., :-1]
        yield "one column more", torch.cat([value, value[..., :1]], -1)
        yield "one dimension more", value[None, None]
        yield "a row without any", torch.zeros_like(value)

    return Kind(bad)


def count(least: int, *, optional: bool = False, most: int | None = None) -> Kind:
    """An integer of at least `least`."""

    def bad(value: Any, number: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("a list", [3]), ("a fraction", least + 0.5), ("NaN", NAN), ("infinity", INF), ("true", True))
        if not optional:
            yield "none", None
        yield "one too few", least - 1
        yield "many too few", least - 1 - number % 1000
        if most is not None:
            yield "one too many", most + 1

    return Kind(bad)


def number(low: float = 0.0, high: float = INF, *, closed: bool = False, optional: bool = False) -> Kind:
    """A number between `low` and `high`; closed: `low` itself is good."""

    def bad(value: Any, seed: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("a list", [0.5]), ("NaN", NAN), ("infinity", INF), ("negative infinity", -INF))
        if not optional:
            yield "none", None
        if math.isfinite(low):
            if not closed:
                yield "the lower end", low
            yield "below the lower end", low - 1e-3 - (seed % 100)
        if math.isfinite(high):
            yield "above the upper end", high + 1e-3 + (seed % 100)

    return Kind(bad)


def per_sample(batch: int | None = None) -> Kind:
    """A positive number, or one for each of the samples of a batch."""

    def bad(value: Any, seed: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("none", None), ("zero", 0.0), ("negative", -1.0), ("NaN", NAN), ("infinity", INF))
        size = len(value) if isinstance(value, torch.Tensor) else 1
        yield "too many", torch.ones(size + 7, dtype=torch.float64)
        yield "a matrix", torch.ones(size, 1, 1, dtype=torch.float64)
        yield "a NaN among them", torch.full((size,), NAN, dtype=torch.float64)

    return Kind(bad)


def name(*, optional: bool = False) -> Kind:
    """One of several names."""

    def bad(value: Any, seed: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("another name", f"rubbish {seed}"), ("no name", ""), ("a number", 3), ("a list", ["SV"]))
        yield "bytes", b"SV"
        if not optional:
            yield "none", None

    return Kind(bad)


def instance(*, optional: bool = False) -> Kind:
    """An object of a class of ours or of torch."""

    def bad(value: Any, seed: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("a number", 3), ("a list", [1.0]), ("a tensor", torch.zeros(2, 3)))
        if not optional:
            yield "none", None

    return Kind(bad)


def seed(*, optional: bool = False) -> Kind:
    """An integer of 64 bits, or a tensor that holds one."""

    def bad(value: Any, number: int) -> Iterator[tuple[str, Any]]:
        yield from _types(("a fraction", 0.5), ("a list", [1]), ("true", True), ("too large", 2**63), ("NaN", NAN))
        yield from (("two numbers", torch.zeros(2).long()), ("a tensor with a point", torch.tensor(0.5)))
        if not optional:
            yield "none", None

    return Kind(bad)


def values(**wrong: Any) -> Kind:
    """These values, by their names."""
    return Kind(lambda value, seed: iter(wrong.items()))


def both(*kinds: Kind) -> Kind:
    """All bad values of several kinds."""

    def bad(value: Any, seed: int) -> Iterator[tuple[str, Any]]:
        for kind in kinds:
            yield from kind.bad(value, seed)

    return Kind(bad)


def bad_cases(*calls: Call) -> tuple[tuple[Call, str, str], ...]:
    """Every bad argument of every call."""
    return tuple(case for call in calls for case in call.cases())


def refused(cases: tuple[tuple[Call, str, str], ...]) -> None:
    """All of these, once each; what is not refused is told in a line."""
    lines = [line for call, argument, label in cases if (line := call.refuses(argument, label, 0))]
    assert not lines, "\n".join(lines)


def refused_at(cases: tuple[tuple[Call, str, str], ...], place: int, number: int) -> None:
    """One of these, with other good arguments beside it."""
    call, argument, label = cases[place % len(cases)]
    line = call.refuses(argument, label, number)
    assert line is None, line
