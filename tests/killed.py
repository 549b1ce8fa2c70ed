"""A command that is killed, and what follows it, in one process of its own that has imported all they need.

The command runs in a forked child. So the process must have no threads, and tests cannot fork themselves.
"""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from tests import fresh

LIMIT = 120  # seconds


def killed_then(
    killed: Sequence[object], folder: Path, pattern: str, delay: float, then: Sequence[Sequence[object]]
) -> None:
    """Kill a command `delay` seconds after a path in the folder matches the pattern; then run others.

    killed, then: words after `spinformer`.
    """
    words = list(map(str, killed)), str(folder), pattern, delay, [list(map(str, command)) for command in then]
    done = fresh.run(f"from tests.killed import run\nrun(*{words!r})", imports=fresh.EVERYTHING)
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
