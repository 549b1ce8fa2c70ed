"""A command in two processes, as `torchrun` starts them, in forks of one process: what they import is imported once.

tests/attractor/test_training.py starts `torchrun` itself.
"""

import os
import subprocess
import sys
import uuid
from collections.abc import Sequence

from research.paths import ROOT

LIMIT = 300  # seconds


def run_in_two(words: Sequence[object], imports: Sequence[str]) -> str:
    """What both print to standard output. words: after `spinformer`; imports: modules that are imported before."""
    code = f"import {', '.join(imports)}\nfrom tests.several import launch\nlaunch({list(map(str, words))!r})"
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=LIMIT)
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
