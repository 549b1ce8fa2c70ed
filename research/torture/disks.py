"""Disks that are full at random moments, or read-only, for every command that writes.

The command fails in one line, what was there before stays whole, and once there is room it ends as if nothing had been.
"""

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.torture import house
from research.torture.findings import Findings, Plan
from research.torture.forks import Ended, apart, command, run_child
from research.torture.house import House
from research.torture.kills import results
from research.torture.mounts import Disk, own_mounts
from research.torture.traces import FAILED, STRAY, end_faults, obey_permissions

CASES = 44
SECONDS = 240.0  # that a run may take, on a busy machine
DISK = "disk"
KINDS = ("full", "full", "read-only", "full", "no permission")


@dataclass(frozen=True)
class Writer:
    """A command that writes to the disk. parts: of the house; earlier: the words of a command whose files are there
    before, or ""; words: the command; again: how it goes on after a failure; stays: how the paths begin that a failed
    run may leave; together: files of which all are old or all are new; lost: files of the earlier run that are deleted.
    """

    name: str
    parts: tuple[str, ...]
    earlier: str
    words: str
    again: str = ""
    stays: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def _seeded(words: str, *, before: str = "--seed 1") -> tuple[str, str]:
    """The words of the earlier command, with other numbers, and those of the command."""
    return f"{words} {before}", words


ANSWERS = "predict plain data/{}.jsonl --device cpu --output disk/answers.jsonl"
SCORES = "evaluate plain data/{}.jsonl --device cpu --name scores --results disk/results --output disk/figures"
NLI = f"{house.NLI} --game {house.LAYER} --output disk/run"
GROUND = f"{house.GROUND} --output disk/learnt"
EXPLAINED = "explain plain --file data/dev.jsonl --limit 2 --passes 16 --device cpu --output disk/explained"
STUDY = (
    "evaluate plain data/dev.jsonl --explanations --count 2 --passes 16 --methods kernel-shap random --device cpu"
    " --output disk/found.json"
)
RETRIEVED = "retrieve network/net.safetensors --images images/images.npz --count 4 --output disk/retrieved"
TAUGHT = f"{house.NLI} --head mean --teacher teacher --save-steps 0 --epochs 1 --output disk/taught"
GAME = tuple(f"learnt/game/{name}" for name in ("game.safetensors", "game.json", "misfit.json"))
WRITERS = (
    Writer("train nli", ("encoder", "data"), "", NLI, f"{NLI} --resume", ("run/",)),
    Writer(
        "ground",
        ("plain", "data"),
        *_seeded(GROUND),
        f"{GROUND} --resume",
        ("learnt/game/state.pt", "learnt/game/run.json"),
        GAME,
    ),
    Writer(
        "train attractor",
        ("images",),
        *_seeded(f"{house.ATTRACTOR} --output disk/net.safetensors"),
        stays=("net.state",),
        lost=("net.state", "net.state.previous"),
    ),
    Writer("explain --output", ("plain", "data"), *_seeded(EXPLAINED)),
    Writer(
        "explain --html",
        ("plain", "data"),
        *_seeded(EXPLAINED.replace("--output disk/explained", "--html disk/a.html")),
    ),
    Writer(
        "explain --figures",
        ("plain", "data"),
        *_seeded(EXPLAINED.replace("--output disk/explained", "--figures disk/figures").replace("limit 2", "limit 1")),
    ),
    Writer("evaluate", ("plain", "data"), SCORES.replace("{}", "rows"), SCORES.replace("{}", "dev")),
    Writer("evaluate --explanations", ("plain", "data"), *_seeded(STUDY, before="--seeds 3 4")),
    Writer(
        "evaluate --tables",
        ("plain", "data"),
        *_seeded(house.TABLES.replace("tables.safetensors", "disk/tables.safetensors"), before="--seeds 3"),
    ),
    Writer("retrieve", ("network", "images"), *_seeded(RETRIEVED)),
    Writer("predict", ("plain", "data"), ANSWERS.replace("{}", "dev"), ANSWERS.replace("{}", "rows")),
)


def run(plan: Plan) -> Findings:
    """In a process of its own."""
    return apart("disks", plan)


def work(plan: Plan, writers: tuple[Writer, ...] = WRITERS) -> Findings:
    """Every command in turn, each time with another kind of disk."""
    found, draw = Findings(), random.Random(plan.seed)
    mounted = own_mounts()
    with tempfile.TemporaryDirectory() as place:
        made = House(Path(place) / "house")
        made.folder.mkdir()
        whole: dict[str, tuple[dict[str, Any], int]] = {}
        refused = 0
        for number in range(plan.count(CASES)):
            one = writers[number % len(writers)]
            kind = KINDS[(number // len(writers) + number) % len(KINDS)]
            if one.name not in whole:
                whole[one.name] = _undisturbed(one, made)
            with tempfile.TemporaryDirectory() as folder, _disk(Path(folder), mounted=mounted).attached() as disk:
                refused += _case(one, kind, made, disk, whole[one.name], draw, found)
            found.count(f"{one.name}, {kind}")
    found.figures = {"own_file_system": mounted, "failed_for_want_of_room": refused}
    return found


def _disk(folder: Path, *, mounted: bool) -> Disk:
    (folder / DISK).mkdir()
    return Disk(folder / DISK, mounted=mounted)


def _begin(one: Writer, made: House, folder: Path) -> None:
    """Put the inputs, and the files of the earlier command, where they should be."""
    made.copy(folder, *one.parts)
    (folder / DISK / "kept.txt").write_text("an earlier file\n")
    if one.earlier:
        ended = run_child(command(*one.earlier.split()), folder, limit=SECONDS)
        if ended.status != 0:
            raise RuntimeError(f"{one.earlier} does not end well: {ended.err[-400:]}")
        for name in one.lost:
            (folder / DISK / name).unlink()


def _undisturbed(one: Writer, made: House) -> tuple[dict[str, Any], int]:
    """The files after a run with room, and the bytes of room that it needs at most."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / DISK).mkdir()
        _begin(one, made, folder)
        before = _size(folder / DISK)
        ended = run_child(command(*one.words.split()), folder, limit=SECONDS)
        if ended.status != 0:
            raise RuntimeError(f"{one.words} does not end well: {ended.err[-400:]}")
        return results(folder / DISK), max(_size(folder / DISK) - before, _size(folder / DISK) // 2)


def _size(folder: Path) -> int:
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())


def _case(
    one: Writer,
    kind: str,
    made: House,
    disk: Disk,
    whole: tuple[dict[str, Any], int],
    draw: random.Random,
    found: Findings,
) -> bool:
    """Run the command without room, then with room; whether it failed at first."""
    folder, (expected, size) = disk.path.parent, whole
    _begin(one, made, folder)
    before = results(disk.path)
    free = draw.randrange(size + 4096)
    if kind == "full":
        disk.fill(free)
    else:
        disk.forbid(by_permission=kind == "no permission")
    steps: tuple[Callable[[], None], ...] = (disk.step, obey_permissions)
    ended = run_child(command(*one.words.split()), folder, prepare=steps, limit=SECONDS)
    after = results(disk.path)
    disk.make_room()
    where = f"{one.name}, {kind}{f' with {free} bytes' if kind == 'full' else ''}"
    faults = list(end_faults(ended)) + _faults(one, ended, before, after, expected)
    if kind != "full" and ended.status == 0:
        faults.append("it ended as if it could write")
    for fault in faults:
        found.expect(False, f"{where}: {fault}")
    if ended.status == FAILED:
        again = run_child(command(*(one.again or one.words).split()), folder, limit=SECONDS)
        found.expect(again.status == 0, f"{where}: with room, status {again.status}: {again.err[-300:]}")
        wrong = [name for name, content in results(disk.path).items() if expected.get(name) != content]
        found.expect(not wrong or again.status != 0, f"{where}: with room, {wrong[:3]} are not as they should be")
    return ended.status == FAILED


def _faults(
    one: Writer, ended: Ended, before: dict[str, Any], after: dict[str, Any], expected: dict[str, Any]
) -> list[str]:
    """What is wrong with the files after the command."""
    if ended.status == 0:
        return [
            f"it ended well, but {name} is not as it should be"
            for name in expected
            if after.get(name) != expected[name]
        ]
    faults = []
    for name in sorted({**before, **after}):
        if STRAY.search(name):
            faults.append(f"{name} was left")
        elif name in before and after.get(name) not in (before[name], expected.get(name)):
            faults.append(f"{name} was there before, and is {'damaged' if name in after else 'gone'}")
        elif name not in before and after[name] != expected.get(name) and not name.startswith(one.stays or "\n"):
            faults.append(f"{name} was left, and is not whole")
    changed = [after.get(name) != before.get(name) for name in one.together]
    if any(changed) and not all(changed):
        faults.append(f"of {', '.join(one.together)} some are old and some are new")
    return faults
