"""Damaged, foreign and malicious files to every reader: it works, or it ends with one line; nothing else happens."""

import random
import tempfile
from pathlib import Path

from research.torture.findings import Findings, Plan
from research.torture.forks import Ended, apart, run_child
from research.torture.formats import Format, all_formats
from research.torture.house import House
from research.torture.traces import Traces, obey_permissions

CASES = 510
SECONDS = 90.0  # that a case may take, on a busy machine
GROWTH = 400 << 20  # bytes of memory that a damaged file may take beyond what the good one takes
ADDRESSES = 6 << 30  # bytes of address space, so that a failure does no harm


def run(plan: Plan) -> Findings:
    """In a process of its own."""
    return apart("files", plan)


def work(plan: Plan, names: tuple[str, ...] = ()) -> Findings:
    """Every format in turn, each time with another damage; names: of the formats, by default all."""
    found, draw = Findings(), random.Random(plan.seed)
    with tempfile.TemporaryDirectory() as place:
        house = House(Path(place) / "house")
        house.folder.mkdir()
        formats = [one for one in all_formats() if not names or one.name in names]
        draw.shuffle(formats)
        order = {one.name: draw.sample(list(one.damages), len(one.damages)) for one in formats}
        peaks: dict[str, int] = {}
        grown = slowest = 0.0
        for number in range(plan.count(CASES)):
            one, turn = formats[number % len(formats)], number // len(formats)
            if one.name not in peaks:
                ended, faults = trial(one, None, house, draw)
                peaks[one.name] = ended.peak
                found.expect(not faults and ended.status == 0, f"{one.name}, undamaged: {faults} {ended.err[-200:]}")
            damage = order[one.name][turn % len(one.damages)]
            ended, faults = trial(one, damage, house, random.Random(f"{plan.seed} {one.name} {damage} {turn}"))
            growth = ended.peak - peaks[one.name]
            if growth > GROWTH:
                faults.append(f"took {growth >> 20} MiB more memory than the good file")
            found.count(one.name)
            for fault in faults:
                found.expect(False, f"{one.name}, {damage}: {fault}")
            grown, slowest = max(grown, growth / 2**20), max(slowest, ended.seconds)
        found.figures = {"formats": len(peaks), "most_memory_mib": round(grown), "slowest_seconds": round(slowest, 1)}
    return found


def trial(one: Format, damage: str | None, house: House, draw: random.Random) -> tuple[Ended, list[str]]:
    """Have the command read a damaged file; how it ended, and what is wrong with that."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        house.copy(folder, *one.parts)
        if damage is not None:
            (path,) = folder.glob(one.path)
            one.damages[damage](path, draw)
            if one.seal is not None:
                one.seal(path)
        traces = Traces(folder)
        steps = (obey_permissions,)
        ended = run_child(one.action, folder, prepare=steps, limit=SECONDS, memory=ADDRESSES)
        return ended, traces.faults(ended, one.stays)
