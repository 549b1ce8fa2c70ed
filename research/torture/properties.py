"""Laws of the whole public API on generated inputs: the tests in tests/properties, with many more cases than usual."""

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from research.torture.findings import Findings, Plan

ROOT = Path(__file__).parents[2]
CASES = 10_000
TESTS = Path("tests") / "properties"
HOURS = 3600 * 2
# A failure of pytest: its heading, and the lines below it that say what came and for which input.
HEADING = re.compile(r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<test>\S+) _{3,}$")
PART = re.compile(r"^={3,} .* ={3,}$")  # of the whole report: with CI set, its summary repeats the examples
REASON = re.compile(r"^E\s+(?P<text>\S.*)$")
EXAMPLE = re.compile(r"^(?:E\s+)?(?:Failing test case|Falsifying example): (?P<text>.*)$")
WIDTH = 500


def run(plan: Plan) -> Findings:
    """As many cases as the plan says, in a process of their own; a law that does not hold is a line."""
    wanted, findings = plan.count(CASES), Findings()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "cases.json"
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
            "SPINFORMER_CASES": str(wanted),
            "SPINFORMER_CASES_SEED": str(plan.seed),
            "SPINFORMER_CASES_REPORT": str(report),
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
        }
        command = [sys.executable, "-m", "pytest", str(TESTS), "-q", "--tb=short", "-p", "no:cacheprovider"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HOURS, check=False
        )
        counts: dict[str, int] = json.loads(report.read_text()) if report.is_file() else {}
    for failure in failures_of(done.stdout):
        findings.expect(False, failure)
    summary = " ".join((done.stdout.strip().splitlines() or ["nothing was printed"])[-1].split())
    findings.expect(
        done.returncode == 0 or bool(findings.failures),
        f"pytest ended with {done.returncode}: {summary} {' '.join(done.stderr.split())[-WIDTH:]}",
    )
    total = sum(counts.values())
    findings.count("generated inputs", total)
    findings.count("laws", len(counts))
    findings.expect(total >= wanted, f"expected at least {wanted} generated inputs; there were {total}")
    findings.figures["pytest"] = summary
    return findings


def failures_of(output: str) -> list[str]:
    """For each test that failed, its name, the reason and the falsifying example, in one line."""
    lines = output.splitlines()
    found_at = [(number, heading["test"]) for number, line in enumerate(lines) if (heading := HEADING.match(line))]
    failures = []
    for start, name in found_at:
        below = itertools.takewhile(lambda line: not (HEADING.match(line) or PART.match(line)), lines[start + 1 :])
        section = list(below)
        reason = next((found["text"] for line in section if (found := REASON.match(line))), "no reason was given")
        failures.append(f"{name}: {reason}{_example(section)}"[:WIDTH])
    return failures


def _example(section: list[str]) -> str:
    """The falsifying example, which may go on for several lines up to a closing bracket."""
    for number, line in enumerate(section):
        found = EXAMPLE.match(line)
        if found:
            rest = [re.sub(r"^E\s+", "", part).strip() for part in section[number + 1 :]]
            end = rest.index(")") if ")" in rest else 0
            return " for " + " ".join([found["text"], *rest[: end + 1 if found["text"].endswith("(") else 0]])
    return ""
