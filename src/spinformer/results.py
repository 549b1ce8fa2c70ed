"""Results on file: what was run, on what, and what came out.

A result is one JSON file `results/<name>.json`. Documents quote figures from these files alone
(`tools/render.py` fills them in), so everything that a reader needs to judge a figure stands beside it. Where a copy
of the code runs without its history, as in a container, the variable SPINFORMER_COMMIT says which commit it is.
"""

import hashlib
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

import torch

from spinformer.whole import whole

RESULTS = Path("results")


def sha256(path: Path) -> str:
    """Digest of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(
    name: str,
    outcome: Mapping[str, Any],
    *,
    command: str,
    config: Mapping[str, Any],
    data: Mapping[str, str] | None = None,
    directory: Path = RESULTS,
) -> Path:
    """Write `directory/name.json`; `data` maps each input's name to its sha256. NaN and infinities become null."""
    record = {
        "name": name,
        "command": command,
        "config": dict(config),
        "data": dict(data or {}),
        "commit": _commit(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": _hardware(),
        "versions": _versions(),
        "outcome": dict(outcome),
    }
    path = directory / f"{name}.json"
    with whole(path) as partial:
        partial.write_text(json.dumps(_strict(record), indent=1, sort_keys=False, allow_nan=False) + "\n")
    return path


def read(name: str, directory: Path = RESULTS) -> dict[str, Any]:
    """The record that `write` left under this name."""
    path = directory / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in directory.glob("*.json"))) or "none"
        raise FileNotFoundError(f"no result named {name!r} in {directory}/ (there are: {known})")
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def once(
    name: str, measure: Callable[[], Mapping[str, Any]], *, command: str, config: Mapping[str, Any], directory: Path
) -> dict[str, Any]:
    """The outcome that lies in `directory` under this name, where it was measured with the same `config`; else what
    `measure` gives, which is left there: long work that is stopped goes on after its last whole part."""
    if (directory / f"{name}.json").is_file():
        record = read(name, directory)
        if record["config"] == json.loads(json.dumps(_strict(config))):
            return dict(record["outcome"])
    found: dict[str, Any] = json.loads(json.dumps(_strict(measure())))  # as a file gives it back
    write(name, found, command=command, config=config, directory=directory)
    return found


def _strict(value: Any) -> Any:
    """The same with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _strict(found) for name, found in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(found) for found in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _commit() -> str | None:
    """The commit of this folder; where it has none, what SPINFORMER_COMMIT says."""
    try:
        done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("SPINFORMER_COMMIT")
    return done.stdout.strip()


def _hardware() -> dict[str, Any]:
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("spinformer", "torch", "transformers", "shapiq"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
