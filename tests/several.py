"""A command in two processes, as `torchrun` starts them, in forks of one process: what they import is imported once.

tests/attractor/test_training.py starts `torchrun` itself.
"""

import uuid
from collections.abc import Sequence

from tests import fresh


def run_in_two(words: Sequence[object]) -> str:
    """What both print to standard output. words: after `spinformer`."""
    code = f"from tests.several import launch\nlaunch({list(map(str, words))!r})"
    done = fresh.run(code, imports=fresh.EVERYTHING)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def launch(words: Sequence[str]) -> None:
    """In the process: what `torchrun --standalone --nproc-per-node=2` does, with forks in place of new processes."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from spinformer.cli import main

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id=str(uuid.uuid4()),
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,
        start_method="fork",
    )
    statuses = elastic_launch(config, main)(words)
    assert statuses == {0: 0, 1: 0}, statuses
