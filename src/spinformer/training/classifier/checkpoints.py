"""The checkpoints of a run of Trainer: marked when they are complete, and read only while they are as they were."""

import shutil
import sys
from pathlib import Path

from spinformer._base.files import atomic_text, sha256, sync

# A file written last into a checkpoint: the seconds so far, then the sha256 and the name of each file. A folder without
# it is incomplete. Those of earlier versions have the seconds alone.
COMPLETE = "complete"


def checkpoint_step(checkpoint: Path) -> int:
    """The number of updates before a checkpoint."""
    return int(checkpoint.name.rpartition("-")[2])


def mark_complete(checkpoint: Path, seconds: float) -> None:
    """Have the files of a checkpoint on the disk, readable by whom the user's umask allows, and list them."""
    files = sorted(path for path in checkpoint.iterdir() if path.is_file() and path.name != COMPLETE)
    probe = atomic_text(checkpoint / COMPLETE, "")  # empty, so not yet complete
    mode = probe.stat().st_mode
    for path in files:
        path.chmod(mode)
        sync(path)
    lines = [f"{sha256(path)} {path.name}" for path in files]
    atomic_text(probe, "\n".join([str(seconds), *lines]) + "\n")


def earlier_seconds(checkpoint: Path) -> float:
    """The seconds that a complete checkpoint took."""
    return float((checkpoint / COMPLETE).read_text().split("\n", 1)[0])


def is_whole(checkpoint: Path) -> bool:
    """Whether every file is as it was when the checkpoint was complete."""
    try:
        _, *lines = (checkpoint / COMPLETE).read_text().splitlines()
        earlier_seconds(checkpoint)
        files = [line.split(" ", 1) for line in lines]
        return all(sha256(checkpoint / name) == digest for digest, name in files)
    except (OSError, ValueError):
        return False


def last_checkpoint(output: Path) -> Path | None:
    """The last checkpoint that is complete and undamaged, if there is one; damaged ones are named on standard error."""
    complete = [path.parent for path in output.glob(f"checkpoint-*/{COMPLETE}") if path.stat().st_size]
    for checkpoint in sorted(complete, key=checkpoint_step, reverse=True):
        if is_whole(checkpoint):
            return checkpoint
        print(f"{checkpoint} is damaged; the run goes on from the one before", file=sys.stderr)
    return None


def remove_others(output: Path, last: Path | None) -> None:
    """Delete incomplete and damaged checkpoints: Trainer keeps a fixed number, and they would push whole ones out.

    last: the one that the run goes on from, after which there is nothing to keep.
    """
    for folder in output.glob("checkpoint-*"):
        if last is None or checkpoint_step(folder) > checkpoint_step(last) or not (folder / COMPLETE).is_file():
            shutil.rmtree(folder)
