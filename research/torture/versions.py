"""The tests under every supported Python, with the lowest and the newest versions of what the library needs.

Each environment is made once, in build/versions, and kept. Interpreters are found as pythonX.Y on the PATH.
"""

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from research.paths import ROOT
from research.torture.findings import Findings, Plan

ENVIRONMENTS = ROOT / "build" / "versions"
HOURS = 3600
SUMMARY = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
TOOLS = ("test", "torture", "lint", "dev")  # extras of those who work on the library
NOT_PACKAGE = ("research", "properties")  # tests of what no user installs, and those that `properties` runs at length
SHOWN = ("torch", "transformers", "numpy", "datasets", "gradio")


@dataclass(frozen=True)
class Environment:
    """One Python with one choice of dependencies."""

    python: str
    chosen: Literal["lowest", "newest"]

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return ENVIRONMENTS / f"{self.python}-{self.chosen}"

    @property
    def interpreter(self) -> str:
        """Its Python."""
        return str(self.folder / "bin" / "python")


MATRIX = (
    Environment("3.11", "lowest"),
    Environment("3.14", "newest"),
    Environment("3.12", "newest"),
    Environment("3.13", "newest"),
)


def run(plan: Plan) -> Findings:
    """The tests of the package that are not slow, in every environment; none may fail."""
    found = Findings()
    for environment in MATRIX[: plan.count(len(MATRIX))]:
        name = f"Python {environment.python}, {environment.chosen}"
        found.count("environments")
        try:
            prepare(environment)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            found.expect(False, f"{name}: {_last_line(error)}")
            continue
        command = [
            environment.interpreter,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            "-W",
            "default",
        ]
        ignored = [f"--ignore=tests/{folder}" for folder in NOT_PACKAGE]
        done = subprocess.run([*command, *ignored], cwd=ROOT, capture_output=True, text=True, timeout=HOURS)
        counts = {what: int(number) for number, what in SUMMARY.findall(done.stdout.rpartition("\n=")[2])}
        found.count("tests", sum(counts.values()))
        found.figures[name] = versions(environment) | counts
        for line in done.stdout.splitlines():
            found.expect(not line.startswith(("FAILED ", "ERROR ")), f"{name}: {line}")
        found.expect(done.returncode == 0 and "passed" in counts, f"{name}: pytest ended with {done.returncode}")
    return found


def prepare(environment: Environment) -> None:
    """Make the environment, where it is not there yet, and install the library with everything that tests need."""
    if not environment.folder.is_dir():
        python = shutil.which(f"python{environment.python}")
        if python is None:
            raise FileNotFoundError(f"there is no python{environment.python} on the PATH")
        subprocess.run([python, "-m", "venv", str(environment.folder)], check=True, capture_output=True, text=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = lowest(project) if environment.chosen == "lowest" else _newest()
    constraints = environment.folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in bounds.items()))
    install = [environment.interpreter, "-m", "pip", "install", "--quiet", "-c", str(constraints)]
    for wanted in (["--upgrade", f"torch=={bounds['torch']}"], ["--upgrade", "-e", f"{ROOT}[dev]"]):
        subprocess.run([*install, *wanted], check=True, capture_output=True, text=True)


def lowest(project: dict[str, Any]) -> dict[str, str]:
    """The lower bound of every dependency of users in pyproject.toml, by name."""
    extras = [group for name, group in project["optional-dependencies"].items() if name not in TOOLS]
    wanted = [Requirement(line) for group in (project["dependencies"], *extras) for line in group]
    return {canonicalize_name(each.name): _lower_bound(each.specifier) for each in wanted}


def versions(environment: Environment) -> dict[str, str]:
    """What is installed there of the packages that matter most."""
    script = f"from importlib.metadata import version\nfor name in {SHOWN!r}: print(name, version(name))"
    done = subprocess.run([environment.interpreter, "-c", script], capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def _newest() -> dict[str, str]:
    """Every pin of constraints.txt, which are the newest versions that the bounds allowed when it was written."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def _lower_bound(specifier: SpecifierSet) -> str:
    return next(part.version for part in specifier if part.operator == ">=")


def _last_line(error: Exception) -> str:
    text = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    return text.strip().splitlines()[-1] if text.strip() else repr(error)
