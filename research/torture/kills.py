"""Trainings killed at random moments, some twice: resumed, each ends with the bits of one that was never killed.

Half of the kills come at a random time, the others before a random operation on the files of the run: half of these
while the final files are written.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from research.torture import house
from research.torture.findings import Findings, Plan
from research.torture.forks import Ended, apart, command, run_child
from research.torture.house import House
from research.torture.traces import LOCK, contents

KILLS = 50
SECONDS = 240.0  # that a run may take, on a busy machine
OUTPUT = "out"
# Operations on files that Python reports before it makes them.
OPERATIONS = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "shutil.move", "shutil.rmtree")
TIMES = re.compile(r"seconds$|_runtime$|_per_second$|^resumed$|^milliseconds$|^written$|^commit$")
STATE, LOGS = re.compile(r"\.(state|pt|pth)(\.previous)?$"), re.compile(r"(^|/)runs/")
MINUTES = re.compile(r"\d+\.\d minutes")
REPORTED = "operations: "


@dataclass(frozen=True)
class Training:
    """A command that can be killed. parts: of the house, that it reads; words: how it begins; again: how it goes on;
    final: part of the path of the first file that it writes at its end.
    """

    name: str
    parts: tuple[str, ...]
    words: str
    again: str
    final: str


NLI = f"{house.NLI} --game {house.LAYER} --output {OUTPUT}"
GROUND = f"{house.GROUND} --output {OUTPUT}"
NETWORK = f"{house.ATTRACTOR} --output {OUTPUT}/net.safetensors"
TRAININGS = (
    Training("train nli", ("encoder", "data"), NLI, f"{NLI} --resume", ".saving-"),
    Training("ground", ("plain", "data"), GROUND, f"{GROUND} --resume", "game.safetensors"),
    Training("train attractor", ("images",), NETWORK, NETWORK, "net.safetensors"),
)


@dataclass(frozen=True)
class Undisturbed:
    """A run that was not killed: how long it took, the files that it made, and the paths of its operations on them."""

    seconds: float
    files: dict[str, Any]
    operations: list[str]


def run(plan: Plan) -> Findings:
    """In a process of its own."""
    return apart("kills", plan)


def work(plan: Plan, trainings: tuple[Training, ...] = TRAININGS) -> Findings:
    """Kill the trainings in turn until there were enough kills."""
    found, draw = Findings(), random.Random(plan.seed)
    with tempfile.TemporaryDirectory() as place:
        made = House(Path(place) / "house")
        made.folder.mkdir()
        whole = {one.name: _undisturbed(one, made) for one in trainings}
        wanted, kills, runs, twice = plan.count(KILLS), list[str](), 0, 0
        while len(kills) < wanted and runs < 10 * wanted:
            one = trainings[runs % len(trainings)]
            runs += 1
            with tempfile.TemporaryDirectory() as folder:
                moments = _case(one, made, Path(folder), whole[one.name], draw, found, wanted - len(kills))
            kills, twice = kills + moments, twice + (len(moments) > 1)
            found.count(one.name, len(moments))
    found.expect(len(kills) == wanted, f"{wanted} kills were wanted, {len(kills)} came in time")
    by_time = sum(moment.startswith("after") for moment in kills)
    found.figures = {"runs": runs, "twice": twice, "by_time": by_time, "by_operation": len(kills) - by_time}
    return found


def _case(
    one: Training, made: House, folder: Path, whole: Undisturbed, draw: random.Random, found: Findings, most: int
) -> list[str]:
    """Kill a run, perhaps kill the resumed run too, then let it end; the moments of the kills."""
    made.copy(folder, *one.parts)
    said: list[str] = []
    for words in (one.words, one.again)[: 1 + (draw.random() < 0.4 and most > 1)]:
        ended, moment = _killed(words, one, folder, whole, draw)
        if ended.status == -signal.SIGKILL and not ended.hung:
            said.append(moment)
        elif ended.status != 0:
            found.expect(False, f"{one.name}: exit status {ended.status} before it was killed: {ended.err[-300:]}")
    if not said:
        return said
    ended = run_child(command(*one.again.split()), folder, limit=SECONDS)
    where = f"{one.name}, killed {', then '.join(said)}"
    found.expect(ended.status == 0, f"{where}: resumed, it ended with status {ended.status}: {ended.err[-300:]}")
    if ended.status == 0:
        for fault in _differences(whole.files, results(folder / OUTPUT)):
            found.expect(False, f"{where}: {fault}")
    return said


def _undisturbed(one: Training, made: House) -> Undisturbed:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        made.copy(folder, *one.parts)
        ended = run_child(_reported(one.words), folder, limit=SECONDS)
        if ended.status != 0:
            raise RuntimeError(f"{one.name} does not end well: {ended.err[-400:]}")
        operations = json.loads(ended.err.rpartition(REPORTED)[2])
        return Undisturbed(ended.seconds, results(folder / OUTPUT), operations)


def _killed(words: str, one: Training, folder: Path, whole: Undisturbed, draw: random.Random) -> tuple[Ended, str]:
    """A run that is killed at a random moment, if it has not ended before; the moment, for people."""
    way = draw.random()
    if way < 0.5:
        moment = draw.uniform(0.02, 1.0) * whole.seconds
        ended = run_child(command(*words.split()), folder, limit=SECONDS, kill_after=moment)
        return ended, f"after {moment:.2f} s"
    operations = whole.operations
    first = next(place for place, path in enumerate(operations) if one.final in path) if way > 0.75 else 0
    number = draw.randrange(first, len(operations))
    watch = _Watch(number)
    ended = run_child(command(*words.split()), folder, limit=SECONDS, prepare=(watch.begin,))
    return ended, f"before operation {number}"


class _Watch:
    """Counts the operations on files of the run; kill: the number of the one before which the process is killed."""

    def __init__(self, kill: int | None = None) -> None:
        self.kill, self.paths = kill, list[str]()

    def begin(self) -> None:
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if not isinstance(args[2], int) or not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif event not in OPERATIONS:
            return
        if f"{OUTPUT}/" in str(args[0]):
            if len(self.paths) == self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            self.paths.append(str(args[0]).rpartition(f"{OUTPUT}/")[2])


def _reported(words: str) -> Callable[[], int]:
    """The action: a command that reports its operations on standard error."""

    def action() -> int:
        watch = _Watch()
        watch.begin()
        status = command(*words.split())()
        print(f"\n{REPORTED}{json.dumps(watch.paths)}", file=sys.stderr)
        return status

    return action


def results(folder: Path) -> dict[str, Any]:
    """What a run leaves in a folder, by path: the digest of a file; of JSON its content without times. Without locks,
    logs, and the lists of checkpoints, which have the digests of files with times.
    """
    found: dict[str, Any] = {}
    for name, digest in contents(folder).items():
        if LOCK.search(name) or LOGS.search(name) or name.endswith("/complete"):
            continue
        found[name] = digest
        with contextlib.suppress(json.JSONDecodeError):
            if name.endswith(".json"):
                found[name] = _without_times(json.loads((folder / name).read_text()))
        if STATE.search(name):
            with contextlib.suppress(Exception):  # a checkpoint that is not complete is not read by a run either
                found[name] = _plain(torch.load(folder / name, weights_only=False))
        if name.endswith("README.md"):
            found[name] = MINUTES.sub("", (folder / name).read_text())
    return found


def _plain(value: Any) -> Any:
    """A state as plain values: how torch stores tensors that share memory depends on where they came from."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {hashlib.sha256(value.contiguous().numpy().tobytes()).hexdigest()}"
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else repr(value)


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if not TIMES.search(key)}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def _differences(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    lost = [f"{name} is missing" for name in sorted(set(expected) - set(got))]
    stray = [f"{name} was left" for name in sorted(set(got) - set(expected))]
    both = sorted(set(expected) & set(got))
    return (
        lost
        + stray
        + [f"{name} differs: {_first(expected[name], got[name])}" for name in both if expected[name] != got[name]]
    )


def _first(expected: Any, got: Any) -> str:
    """Where two values differ first, shortly."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in {**expected, **got}:
            if expected.get(key) != got.get(key):
                return f"{key}: {_first(expected.get(key), got.get(key))}"
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        return next(_first(*pair) for pair in zip(expected, got, strict=True) if pair[0] != pair[1])
    return f"{expected!r:.60} became {got!r:.60}"
