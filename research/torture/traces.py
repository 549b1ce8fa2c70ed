"""What a command leaves behind: its exit status, what it printed, and what became of the files around it."""

import ctypes
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from research.torture.damage import WITNESS
from research.torture.forks import Ended

LINE = 700  # characters of the line on standard error
FAILED = 2  # exit status of a command that says what is wrong
# What is no number on the screen, and files that a writer leaves where it was stopped.
NO_NUMBER = re.compile(r"(?<![a-z])(nan|inf|infinity)(?![a-z])", re.IGNORECASE)
STRAY = re.compile(r"\.partial|\.saving-|\.tmp\b")
LOCK = re.compile(r"(^|/)\.([^/]*\.)?lock$")
# Said on standard error beside the one line.
BAR, SAID = (
    re.compile(r"\d+%\||\d+(it|/s)"),
    re.compile(r"; the run goes on from|^\[transformers\]|were cut to \d+ tokens$"),
)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Traces:
    """A folder as it was before a command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.before = folder, contents(folder)

    def faults(self, ended: Ended, stays: tuple[str, ...] = ()) -> list[str]:
        """What is wrong with the end of a command; stays: how the paths begin that it may leave or change although it
        failed.
        """
        after = contents(self.folder)
        changed = sorted(name for name, content in after.items() if self.before.get(name) != content)
        lost = sorted(set(self.before) - set(after))
        faults = list(end_faults(ended))
        faults += [f"left {name}" for name in changed if STRAY.search(name)]
        if WITNESS in after:
            faults.append("ran code from outside")
        elif ended.status == 0:
            told = [line for line in ended.out.splitlines() if NO_NUMBER.search(line) and not line.startswith("{'")]
            faults += [f"printed {line:.80}" for line in told[:1]]  # lines of a training's log tell what happened
            faults += [f"wrote {name} with numbers that are none" for name in changed if not _sane(self.folder / name)]
        else:
            left = [name for name in changed + lost if not name.startswith(stays or "\n") and not LOCK.search(name)]
            faults += [f"failed, and left, changed or removed {name}" for name in left]
        return faults


def end_faults(ended: Ended) -> Iterator[str]:
    """What is wrong with the exit status and with standard error."""
    shown = [line for line in re.split(r"[\n\r]", ended.err) if line.strip()]
    last = shown[-1][:300] if shown else ""
    if ended.hung:
        yield f"did not end within {ended.seconds:.0f} s"
    elif "Traceback (most recent call last)" in ended.err:
        yield f"a traceback: {last}"
    elif ended.status < 0:
        yield f"killed by signal {-ended.status}: {last}"
    elif ended.status not in (0, FAILED):
        yield f"exit status {ended.status}: {last}"
    elif ended.status == FAILED:
        lines = [line for line in shown if not BAR.search(line) and not SAID.search(line)]
        if len(lines) != 1 or not lines[0].startswith("spinformer "):
            yield f"not one line on standard error: {lines[:3]}"
        elif len(lines[0]) > LINE:
            yield f"a line of {len(lines[0])} characters: {last}"
        elif CONTROL.search(lines[0]):
            yield f"control characters on standard error: {last!r}"


def contents(folder: Path) -> dict[str, str]:
    """What every path below a folder is: the digest of a file, the target of a link, the kind of anything else."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            found[str(path.relative_to(folder))] = _digest(path)
        elif stat.S_ISLNK(mode):
            found[str(path.relative_to(folder))] = os.readlink(path)
        elif not stat.S_ISDIR(mode):
            found[str(path.relative_to(folder))] = str(stat.S_IFMT(mode))
    return found


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except PermissionError:
        return f"not readable, {path.stat().st_mtime_ns}"


def _sane(path: Path) -> bool:
    """Whether a file that was written holds nothing but finite numbers, as far as its format is known."""
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return all(bool(tensor.isfinite().all()) for tensor in load_file(path).values() if tensor.is_floating_point())
    if path.suffix not in (".json", ".jsonl") or path.name == "trainer_state.json":  # that one is of transformers
        return True
    text = path.read_text()
    try:
        for part in text.splitlines() if path.suffix == ".jsonl" else [text]:
            json.loads(part, parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def obey_permissions() -> None:
    """Give up the right of a superuser to read and write whatever it likes, where the system can."""
    if os.name != "posix" or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "capset"):
        header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        libc.capset(header, sets)
