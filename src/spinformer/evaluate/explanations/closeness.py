"""How close estimates of words' and pairs' values are to the exact ones of the classifier."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spinformer.evaluate.explanations.correlation import correlation
from spinformer.evaluate.explanations.metric import LeftOut, Summary, finite_or_none
from spinformer.evaluate.explanations.tables import ExactTable
from spinformer.explain.record import DEVIATIONS
from spinformer.games import TableGame, exact_values

# A value that differs from the exact one by no more than rounding is within its interval, though that has no length.
ROUNDING = 1e-5


class ExactIndices:
    """Every index of p_y, by its name, from the table of a text; each is computed once, in float64."""

    def __init__(self, table: ExactTable) -> None:
        self.table = table
        self._known: dict[str, Tensor] = {}

    @cached_property
    def _game(self) -> TableGame:
        return TableGame(self.table.values.double())

    def __getitem__(self, index: str) -> Tensor:
        """Of words, (n,), or of pairs i < j in the order of `torch.triu_indices`."""
        if index not in self._known:
            values = exact_values(self._game, index)
            self._known[index] = values if values.dim() == 1 else upper(values)
        return self._known[index]

    @property
    def gain(self) -> float:
        """p_y(N) - p_y(no words)."""
        return float(self.table.values[-1]) - self.empty

    @property
    def empty(self) -> float:
        """p_y(no words)."""
        return float(self.table.values[0])


def upper(matrix: Tensor) -> Tensor:
    """The entries above the diagonal, row by row: (n, n) -> (n (n - 1) / 2,)."""
    first, second = torch.triu_indices(len(matrix), len(matrix), 1)
    return matrix[first, second]


@dataclass(frozen=True)
class Closeness:
    """error = |estimate - exact|_2 / |exact|_2,   covered: how many have |estimate - exact| <= 1.96 stderr

    of the words, or of the pairs, of one text; correlation: Pearson's, NaN for fewer than 3; intervals: how many
    standard errors are known; largest: |estimate - exact|_inf. The error is NaN where all exact values are 0.
    """

    error: float
    correlation: float
    covered: int = 0
    intervals: int = 0
    largest: float = 0.0

    @classmethod
    def of(cls, estimate: Tensor, exact: Tensor, stderr: Tensor | None = None) -> "Closeness":
        """Of vectors of one length; stderr: NaN where not known, None where none is."""
        estimate, exact = estimate.double(), exact.double()
        if not bool(estimate.isfinite().all()):
            raise ValueError(
                f"estimates must be finite; {int((~estimate.isfinite()).sum())} of {len(estimate)} are not"
            )
        size, distance = float(exact.norm()), (estimate - exact).abs()
        error = float(distance.norm()) / size if size > 0 else math.nan
        pearson = correlation(estimate, exact, "pearson")
        largest = float(distance.max()) if len(distance) else 0.0
        if stderr is None:
            return cls(error, pearson, largest=largest)
        known = stderr.isfinite()
        inside = distance[known] <= DEVIATIONS * stderr.double()[known] + ROUNDING
        return cls(error, pearson, int(inside.sum()), int(known.sum()), largest)


@dataclass
class ClosenessRow:
    """How close one method, with one number of passes, comes on N texts.

    passes: those that each text took; words, pairs: None for a text without them; gaps: |sum of the values - (p_y(N) -
    base value)|; base_errors: |base value - p_y(no words)|; left_out: texts that the method could not do. index,
    pair_index: what the values are, None where nothing was measured. until: the error that was promised for every
    word, None where none was.
    """

    method: str
    budget: int
    index: str | None = None
    pair_index: str | None = None
    passes: list[int] = field(default_factory=list)
    words: list[Closeness] = field(default_factory=list)
    pairs: list[Closeness] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    base_errors: list[float] = field(default_factory=list)
    left_out: LeftOut | None = None
    until: float | None = None

    @property
    def name(self) -> str:
        """The method and its passes, or the error that it promises."""
        return f"{self.method} {self.budget}" if self.until is None else f"{self.method} until {self.until:g}"

    @property
    def kept(self) -> float | None:
        """Share of the texts in which no word is off by more than was promised; None where nothing was."""
        if self.until is None or not self.words:
            return None
        return sum(part.largest <= self.until for part in self.words) / len(self.words)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "method": self.method,
            "budget": self.budget,
            "passes": _summary(self.passes),
            "values": {"index": self.index, **_closeness(self.words)} if self.words else None,
            "pairs": {"index": self.pair_index, **_closeness(self.pairs)} if self.pairs else None,
            "additivity": finite_or_none(max(self.gaps)) if self.gaps else None,
            "base_value": {**_summary(self.base_errors), "largest": max(self.base_errors)}
            if self.base_errors
            else None,
            "left_out": None if self.left_out is None else self.left_out.to_dict(),
            "promise": None if self.until is None else {"until": self.until, "kept": self.kept},
        }

    def cells(self) -> list[str]:
        """For the table that people read; the header is HEADER."""
        passes = f"{sum(self.passes) / len(self.passes):.0f}" if self.passes else "-"
        gap = f"{max(self.gaps):.1e}" if self.gaps else "-"
        base = f"{Summary.of(torch.tensor(self.base_errors)).mean:.3f}" if self.base_errors else "-"
        parts = [(self.index, self.words), (self.pair_index, self.pairs)]
        kept = "-" if self.kept is None else f"{self.kept:.0%}"
        return [self.name, passes, *(cell for index, part in parts for cell in _cells(index, part)), gap, base, kept]


HEADER = ["method", "passes", *(f"{kind} {what}" for kind in ("word", "pair") for what in ("error", "r", "in 95%"))]
HEADER += ["gap", "base error", "kept"]


def coverage(parts: Sequence[Closeness]) -> dict[str, float | int | None]:
    """Share of the intervals that hold the exact value: over all of them, and over the texts.

    deviation, lowest: the standard deviation and the minimum of the texts' own shares.
    """
    count = sum(part.intervals for part in parts)
    pooled = sum(part.covered for part in parts) / count if count else math.nan
    shares = torch.tensor([part.covered / part.intervals for part in parts if part.intervals]).double()
    deviation = float(shares.std()) if len(shares) > 1 else math.nan
    lowest = float(shares.min()) if len(shares) else math.nan
    numbers = {"pooled": pooled, "deviation": deviation, "lowest": lowest}
    return {**{name: finite_or_none(number) for name, number in numbers.items()}, "intervals": count}


def _closeness(parts: Sequence[Closeness]) -> dict[str, Any]:
    return {
        "error": _summary([part.error for part in parts]),
        "correlation": _summary([part.correlation for part in parts]),
        "coverage": coverage(parts),
    }


def _summary(numbers: Sequence[float]) -> dict[str, float | int | None]:
    return Summary.of(torch.tensor(numbers, dtype=torch.float64)).to_dict()


def _cells(index: str | None, parts: Sequence[Closeness]) -> list[str]:
    """Error, correlation and coverage."""
    if not parts:
        return ["-", "-", "-"]
    error = Summary.of(torch.tensor([part.error for part in parts]))
    pearson = Summary.of(torch.tensor([part.correlation for part in parts]))
    pooled = coverage(parts)["pooled"]
    spread = "" if math.isnan(error.stderr) else f" ± {error.stderr:.3f}"
    covered = "-" if pooled is None else f"{pooled:.1%}"
    return [f"{index} {error.mean:.3f}{spread}", "-" if not pearson.count else f"{pearson.mean:.3f}", covered]
