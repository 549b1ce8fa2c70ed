"""Entries of the reproduction report: one claim, equation, table or figure of a paper, and how it is judged."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from research.reports.markdown import Record
from research.reports.results import read_result
from research.steps import BY_NAME


class Verdict(StrEnum):
    """What came of an entry."""

    HOLDS = "holds"
    CONDITIONS = "holds with conditions"
    FAILS = "does not hold"
    UNTESTED = "cannot be tested here"
    PENDING = "not run yet"


@dataclass(frozen=True)
class Finding:
    """A verdict and what came out, as one or two sentences of Markdown."""

    verdict: Verdict
    text: str


class NotMeasuredError(Exception):
    """Raised by a judge whose result is on file but does not hold the measurement; its text says what is missing."""


class Results:
    """The results in a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Record] = {}

    def get(self, name: str) -> Record | None:
        """The record of this name, or None where there is no such file."""
        if name not in self._read and (self.folder / f"{name}.json").is_file():
            self._read[name] = read_result(name, self.folder)
        return self._read.get(name)

    @cached_property
    def names(self) -> list[str]:
        """All results in the folder."""
        return sorted(path.stem for path in self.folder.glob("*.json"))


@dataclass(frozen=True)
class Entry:
    """A claim of a paper and its judge.

    anchor: of the row, never changed once published; where: in the paper; claim: one sentence; judge: makes a finding
    from the outcomes of `results`, in their order; criterion: when the claim counts as holding; code: names such as
    `spinformer.games.exact:exact_values`, or files; tests: such as `tests/games/test_exact.py::test_efficiency`;
    headline: whether it is named at the top of the page.
    """

    anchor: str
    where: str
    claim: str
    judge: Callable[..., Finding]
    results: tuple[str, ...] = ()
    criterion: str = ""
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    headline: bool = False

    def find(self, results: Results) -> Finding:
        """The finding, or "not run yet" where a result is not there or does not hold what is needed."""
        outcomes: list[Any] = []
        for name in self.results:
            record = results.get(name)
            if record is None:
                return Finding(Verdict.PENDING, f"`{BY_NAME[name].short}` writes `{name}.json`.")
            outcomes.append(record["outcome"])
        try:
            return self.judge(*outcomes)
        except NotMeasuredError as missing:
            return Finding(Verdict.PENDING, str(missing))


@dataclass(frozen=True)
class Section:
    """A section of a paper with its entries."""

    title: str
    entries: tuple[Entry, ...]


def equation(
    paper: str, number: str, claim: str, code: str, test: str, *, headline: bool = False, note: str = ""
) -> Entry:
    """An entry for a numbered equation: it holds if the library gives what a plain recomputation gives.

    number: as in `research.benchmarks.equations`, "4" or "20-23".
    """

    def judge(outcome: Record) -> Finding:
        difference, tolerance = outcome["differences"][f"{paper}-{number}"], outcome["tolerance"]
        same = difference <= tolerance
        text = f"Largest difference from a plain recomputation: {difference:.0e}." + (f" {note}" if note else "")
        return Finding(Verdict.HOLDS if same else Verdict.FAILS, text)

    where = f"Eq{'s' if '-' in number else ''}. {number.replace('-', ' to ')}"
    return Entry(
        f"{paper}-eq-{number}", where, claim, judge, ("equations",), code=(code,), tests=(test,), headline=headline
    )


def untested(anchor: str, where: str, claim: str, why: str) -> Entry:
    """An entry for a claim that nothing here can decide."""
    return Entry(anchor, where, claim, lambda: Finding(Verdict.UNTESTED, why))


def graded(full: bool, part: bool, text: str) -> Finding:
    """Holds if `full`; holds with conditions if only `part`; else does not hold."""
    return Finding(Verdict.HOLDS if full else Verdict.CONDITIONS if part else Verdict.FAILS, text)


def decided(true: bool, text: str) -> Finding:
    """Holds or does not."""
    return graded(true, False, text)
