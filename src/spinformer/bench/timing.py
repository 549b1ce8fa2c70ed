"""How long and how much memory: repeated runs in one process, or one run in a process of its own."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch


def seconds(function: Callable[[], object], repeats: int = 5, pick: Callable[[list[float]], float] = median) -> float:
    """Median (or another pick) of wall times of `function` after one run to warm up; on CUDA, synchronised."""
    times = []
    for number in range(repeats + 1):
        _synchronize()
        start = time.perf_counter()
        function()
        _synchronize()
        if number:
            times.append(time.perf_counter() - start)
    return pick(times)


def alone(call: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The result of `module:function(arguments)`, evaluated in a fresh process and passed back as JSON.

    environment: variables that it has besides those of this process.
    """
    module, _, expression = call.partition(":")
    code = f"import json, {module} as m; print(json.dumps(m.{expression}))"
    given = os.environ | dict(environment or {})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=given)
    if done.returncode:
        raise RuntimeError(f"{call} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes.

    From Linux's own high-water mark of this program; getrusage would count the parent's size before exec too.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
