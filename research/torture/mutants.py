"""Changed lines of games and ising: how many of a random sample the tests notice.

A sample of all changes (`mutations`) is drawn. For each, a forked process imports the changed module in place of the
real one and runs the tests that run the changed line, the quickest first, until one fails. With the unchanged text of
each file no test may fail: otherwise every mutant would die for nothing. Needs `coverage` before.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType

from tqdm import tqdm

from research.paths import ROOT
from research.torture.coverage import DATA, durations, tests_of_lines
from research.torture.findings import Findings, Plan
from research.torture.mutations import UNCHANGED, Mutation, mutations

SOURCE = ROOT / "src" / "spinformer"
PACKAGES = ("games", "ising")
COUNT, LEAST = 300, 85.0  # mutants, and percent of them that must die
SECONDS = 60.0  # of tests for one mutant, the quickest first
PATIENCE = 180  # seconds until a mutant that does not end counts as dead


def run(plan: Plan) -> Findings:
    """A sample of the mutants; at least 85% must die."""
    if not DATA.is_file():
        raise FileNotFoundError(
            "mutants need to know which test runs which line; run `spinformer torture --only coverage`"
        )
    found, files = Findings(), [path for package in PACKAGES for path in sorted((SOURCE / package).glob("*.py"))]
    every = [mutation for path in files for mutation in mutations(path)]
    drawn = random.Random(plan.seed).sample(every, min(plan.count(COUNT), len(every)))
    _import_once()
    same = {mutation.path: replace(mutation, change=UNCHANGED) for mutation in drawn}
    for mutation, dead in judged(list(same.values())):
        found.expect(not dead, f"tests of {mutation.path.relative_to(SOURCE)} fail without a change")
    survivors = sorted(describe(mutation) for mutation, dead in judged(drawn) if not dead)
    share = 100 * (1 - len(survivors) / len(drawn))
    found.count("mutants", len(drawn))
    found.figures.update(possible=len(every), percent_dead=share, survivors=survivors)
    found.expect(share >= LEAST, f"{share:.1f}% of mutants die, at least {LEAST:g} expected")
    return found


def describe(mutation: Mutation) -> str:
    """File, line, its text and the change."""
    text = mutation.path.read_text().splitlines()[mutation.line - 1].strip()
    return f"{mutation.path.relative_to(SOURCE)}:{mutation.line} `{text}`: {mutation.change}"


def tests_for(mutation: Mutation) -> list[str]:
    """Tests that run the changed line, or any line of the file where only its import does; the quickest first."""
    lines = tests_of_lines(mutation.path)
    names = lines.get(mutation.line) or set().union(*lines.values())
    chosen: list[str] = []
    total = 0.0
    for name in sorted(names, key=lambda name: (durations().get(name, 0.0), name)):
        total += durations().get(name, 0.0)
        if chosen and total > SECONDS:
            break
        chosen.append(name)
    return chosen


def judged(drawn: Sequence[Mutation]) -> Iterator[tuple[Mutation, bool]]:
    """Each mutant and whether a test failed, or did not end, with it; as many at once as there are cores."""
    running: dict[int, tuple[Mutation, float]] = {}
    waiting = iter(tqdm(drawn, desc="mutants", unit=""))
    while True:
        while len(running) < (os.cpu_count() or 1) and (mutation := next(waiting, None)) is not None:
            tests = tests_for(mutation)
            if tests:
                running[_start(mutation, tests)] = mutation, time.monotonic() + PATIENCE
            else:
                yield mutation, False
        if not running:
            return
        time.sleep(0.02)
        for child, (mutation, until) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)
                done, status = os.waitpid(child, 0)
            if done:
                del running[child]
                yield mutation, os.waitstatus_to_exitcode(status) != 0


def _start(mutation: Mutation, tests: Sequence[str]) -> int:
    """The number of a forked process that imports the changed file and runs the tests; it ends with 0 if all pass."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    os._exit(_survives(mutation, tests))


def _survives(mutation: Mutation, tests: Sequence[str]) -> int:
    import pytest

    os.chdir(ROOT)
    for name in [name for name in sys.modules if name.startswith("spinformer")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Changed(mutation))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "--tb=no"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis was imported before pytest began
    try:
        return int(pytest.main([*options, *tests]))
    except BaseException:  # whatever a changed module does, a test has noticed it
        return 1


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from changed text."""

    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation
        parts = mutation.path.relative_to(SOURCE.parent).with_suffix("").parts
        self.package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.package else parts)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the changed module; of others nothing."""
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(
            name,
            self.mutation.path,
            loader=self,
            submodule_search_locations=[str(self.mutation.path.parent)] if self.package else None,
        )

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed file as the module."""
        exec(compile(self.mutation.tree(), str(self.mutation.path), "exec"), module.__dict__)


def _import_once() -> None:
    """What every test needs apart from the library itself: children then start at once."""
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
    import torch
    import transformers  # noqa: F401

    torch.set_num_threads(1)
