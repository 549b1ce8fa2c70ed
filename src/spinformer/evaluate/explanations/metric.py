"""What a metric of explanations declares and gives, and the mean of its values over texts."""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.evaluate.explanations.decisions import Decisions

Better = Literal["higher", "lower"]
# What a method raises for a text that it cannot do: the text costs the method that text, not the user the run.
CANNOT = (ValueError, ArithmeticError, torch.linalg.LinAlgError)  # type: ignore[attr-defined]


class Quantity:
    """Something that is measured. name: for tables and files; better: which way; bounds: of its values."""

    name: str
    better: Better
    bounds: tuple[float, float]


class Metric(Quantity, ABC):
    """A value for each text's scores."""

    @abstractmethod
    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """(B,) for scores (B, W) of words towards the decided class; NaN where it is not defined."""


@dataclass(frozen=True)
class Summary:
    """mean = sum x / n,   stderr = sqrt(sum (x - mean)² / (n (n - 1)))

    over the `count` texts whose value is defined; left_out: the others. NaN where there are too few.
    """

    mean: float
    stderr: float
    count: int
    left_out: int

    @classmethod
    def of(cls, values: Tensor) -> "Summary":
        """Of values (N,), NaN where not defined."""
        checks.floating("values", values, (1,))
        defined = values[~values.isnan()]
        count = len(defined)
        mean = float(defined.mean()) if count else math.nan
        stderr = float(defined.std()) / math.sqrt(count) if count > 1 else math.nan
        return cls(mean, stderr, count, len(values) - count)

    def to_dict(self) -> dict[str, float | int | None]:
        """For JSON."""
        numbers = {"mean": finite_or_none(self.mean), "stderr": finite_or_none(self.stderr)}
        return {**numbers, "count": self.count, "left_out": self.left_out}


@dataclass(frozen=True)
class LeftOut:
    """Texts that a method could not do: how many, and why not the first of them."""

    count: int
    reason: str

    @classmethod
    def add(cls, known: "LeftOut | None", error: Exception) -> "LeftOut":
        """One more, for this error."""
        reason = " ".join(str(error).split()) or type(error).__name__
        return cls(1, reason) if known is None else cls(known.count + 1, known.reason)

    def to_dict(self) -> dict[str, int | str]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.count} {'text' if self.count == 1 else 'texts'} left out: {self.reason}"


def finite_or_none(value: float) -> float | None:
    """The number, or None where it is NaN or infinite, which JSON cannot hold."""
    return value if math.isfinite(value) else None
