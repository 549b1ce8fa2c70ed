"""Time and memory: repeated runs in one process, or one run in a process of its own."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from research.paths import ROOT


def seconds(function: Callable[[], object], repeats: int = 5, pick: Callable[[list[float]], float] = median) -> float:
    """Median (or another `pick`) of the wall times of `function` after a warm-up run; synchronised on CUDA."""
    return seconds_in_turn([function], repeats, pick=pick)[0]


def seconds_in_turn(
    functions: Sequence[Callable[[], object]],
    repeats: int,
    warm_up: int = 1,
    pick: Callable[[list[float]], float] = median,
) -> list[float]:
    """Of each function as `seconds`, called in turn after `warm_up` rounds."""
    times: list[list[float]] = [[] for _ in functions]
    for number in range(warm_up + repeats):
        for own, function in zip(times, functions, strict=True):
            _synchronize()
            start = time.perf_counter()
            function()
            _synchronize()
            if number >= warm_up:
                own.append(time.perf_counter() - start)
    return [pick(own) for own in times]


def once(function: Callable[[], object]) -> float:
    """The wall time of one run, on the CPU: where other work is timed in turn."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def run_alone(call: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Evaluate `module:function(arguments)` in a fresh process; returns its result, passed as JSON.

    environment: variables besides those of this process.
    """
    module, _, expression = call.partition(":")
    code = f"import json, {module} as m; print(json.dumps(m.{expression}))"
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    variables = os.environ | {"PYTHONPATH": paths} | dict(environment or {})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=variables)
    if done.returncode:
        raise RuntimeError(f"{call} failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes.

    On Linux the high-water mark of this program: getrusage would also count the parent's size before exec.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
