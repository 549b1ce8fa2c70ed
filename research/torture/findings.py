"""What a part of the torture is asked to do, and what it found."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plan:
    """seed: of everything random in a part; scale: the share of the full number of cases that is tried."""

    seed: int = 0
    scale: float = 1.0

    def count(self, full: int) -> int:
        """How many cases are tried where the whole torture tries `full`: at least one."""
        return max(1, round(full * self.scale))


@dataclass
class Findings:
    """cases: how many were tried, by kind; failures: a line for each that did not hold; figures: what was measured."""

    cases: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    def count(self, kind: str, number: int = 1) -> None:
        """Add tried cases of a kind."""
        self.cases[kind] = self.cases.get(kind, 0) + number

    def expect(self, holds: bool, failure: str) -> None:
        """Keep `failure`, one line that says what was expected and what came, unless it holds."""
        if not holds:
            self.failures.append(" ".join(failure.split()))
