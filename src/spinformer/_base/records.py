"""Records: one JSON file for each result, with what was run, on what, and what came out.

Documents quote figures from these files alone, so everything needed to judge a figure stands beside it. Where a copy
of the code runs without its history, or with another one, the environment variable SPINFORMER_COMMIT names its commit.
"""

import json
import math
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from spinformer._base.files import atomic_write, json_object

RESULTS = Path("results")  # where commands of users write, in the current folder


def write(
    name: str,
    outcome: Mapping[str, Any],
    *,
    command: str,
    config: Mapping[str, Any],
    data: Mapping[str, str] | None = None,
    directory: Path,
) -> Path:
    """Write `directory/name.json` and return its path.

    data: sha256 of each input file, by its name. NaN and infinities become null.
    """
    record = {
        "name": name,
        "command": command,
        "config": dict(config),
        "data": dict(data or {}),
        "commit": commit(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": _hardware(),
        "versions": _versions(),
        "outcome": dict(outcome),
    }
    path = directory / f"{name}.json"
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(finite(record), indent=1, sort_keys=False, allow_nan=False) + "\n")
    return path


def read(name: str, directory: Path) -> dict[str, Any]:
    """Read the record that `write` left in `directory` under this name."""
    path = directory / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in directory.glob("*.json"))) or "none"
        raise FileNotFoundError(f"no result named {name!r} in {directory}/ (there are: {known})")
    record = json_object(path)
    missing = sorted({"config", "outcome"} - {key for key, value in record.items() if isinstance(value, dict)})
    if missing:
        raise ValueError(f"{path} is no record of a result: expected an object under {' and '.join(missing)}")
    return record


def once(
    name: str, measure: Callable[[], Mapping[str, Any]], *, command: str, config: Mapping[str, Any], directory: Path
) -> dict[str, Any]:
    """Return the outcome on file under this name, or call `measure` and write what it returns.

    A record made with another `config` is measured again. Long work in several parts, each behind its own `once`,
    continues after the last part that was finished.
    """
    if (directory / f"{name}.json").is_file():
        record = read(name, directory)
        if record["config"] == json.loads(json.dumps(finite(config))):
            return dict(record["outcome"])
    outcome: dict[str, Any] = json.loads(json.dumps(finite(measure())))  # as a file gives it back
    write(name, outcome, command=command, config=config, directory=directory)
    return outcome


def finite(value: Any) -> Any:
    """The same value with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def commit() -> str | None:
    """SPINFORMER_COMMIT, or else the commit checked out in the current folder."""
    if named := os.environ.get("SPINFORMER_COMMIT"):
        return named
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _hardware() -> dict[str, Any]:
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in ("spinformer", "torch", "transformers", "shapiq"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
