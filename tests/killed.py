"""A command that is killed, and what follows it, in one process of its own: what they import is imported once.

The command runs in a forked child. So the process must have no threads, and tests cannot fork themselves.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from research.paths import ROOT

LIMIT = 120  # seconds


def killed_then(
    killed: Sequence[str],
    folder: Path,
    pattern: str,
    delay: float,
    then: Sequence[Sequence[str]],
    imports: Sequence[str],
) -> None:
    """Kill a command `delay` seconds after a path in the folder matches the pattern; then run others.

    killed, then: words after `spinformer`; imports: modules that are imported before.
    """
    words = list(map(str, killed)), str(folder), pattern, delay, [list(map(str, command)) for command in then]
    code = f"import {', '.join(imports)}\nfrom tests.killed import run\nrun(*{words!r})"
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def run(killed: Sequence[str], folder: str, pattern: str, delay: float, then: Sequence[Sequence[str]]) -> None:
    """In the process: the child, the kill, the rest."""
    from spinformer.cli import main

    child = os.fork()
    if not child:
        os._exit(main(killed))
    end = time.monotonic() + LIMIT
    while not list(Path(folder).glob(pattern)):
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it was done before it was killed"
        assert time.monotonic() < end, f"no {pattern} after {LIMIT} s"
        time.sleep(0.005)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, "it was done before it was killed"
    for command in then:
        assert main(command) == 0, command
