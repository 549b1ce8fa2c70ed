"""Lines of games, ising, attention and explain that the tests run, and which test runs which line.

What is measured stays in build/coverage, where `mutants` finds the tests of a changed line.
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from research.paths import ROOT
from research.torture.findings import Findings, Plan

FOLDER = ROOT / "build" / "coverage"
DATA, DURATIONS = FOLDER / "data", FOLDER / "durations.json"
PACKAGES = ("games", "ising", "attention", "explain")
LEAST = 95.0  # percent of the lines of each package
SETTINGS = """
[run]
data_file = {data}
source = src/spinformer/games, src/spinformer/ising, src/spinformer/attention, src/spinformer/explain
[report]
exclude_also =
    if TYPE_CHECKING:
"""


def run(plan: Plan) -> Findings:
    """The tests that are not slow, with every line that they run; at small scale only those of games and ising."""
    found, tests = Findings(), ["tests"] if plan.scale == 1 else ["tests/games", "tests/ising"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    settings = FOLDER / "settings.cfg"
    settings.write_text(SETTINGS.format(data=DATA))
    options = [
        "--cov",
        "--cov-context=test",
        "--cov-report=",
        f"--cov-config={settings}",
        "-p",
        "research.torture.durations",
    ]
    done = _run(["pytest", "-q", "-n", "2", "-m", "not slow", *options, *tests])
    found.expect(done.returncode == 0, f"the tests do not pass: {done.stdout.strip().splitlines()[-1:]}")
    found.count("tests", len(durations()))
    _run(["coverage", "json", f"--rcfile={settings}", "-o", str(FOLDER / "lines.json")])
    files = json.loads((FOLDER / "lines.json").read_text())["files"]
    for package in PACKAGES:
        within = {
            name: data["summary"] for name, data in files.items() if name.startswith(f"src/spinformer/{package}/")
        }
        lines = sum(each["num_statements"] for each in within.values())
        share = 100 * sum(each["covered_lines"] for each in within.values()) / lines
        least = min(within, key=lambda name: within[name]["percent_covered"])
        found.count("lines", lines)
        found.figures[package] = {"percent": share, "least": f"{least}: {within[least]['percent_covered']:.0f}"}
        if plan.scale == 1:
            found.expect(
                share >= LEAST, f"{package}: {share:.1f}% of lines are run by tests, at least {LEAST:g} expected"
            )
    return found


@cache
def durations() -> dict[str, float]:
    """Seconds that each test took."""
    return dict(json.loads(DURATIONS.read_text()))


def tests_of_lines(path: Path) -> dict[int, set[str]]:
    """For each line of a source file the tests that run it; lines that only an import runs have none."""
    from coverage import CoverageData

    data = CoverageData(str(DATA))
    data.read()
    contexts = data.contexts_by_lineno(str(path))
    return {line: {name.rpartition("|")[0] for name in names if name} for line, names in contexts.items()}


def _run(words: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DURATIONS": str(DURATIONS), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT, env=environment, capture_output=True, text=True)
