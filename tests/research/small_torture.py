"""Small versions of the parts about files, kills and disks, and readers and writers that are broken on purpose.

Run by `tests.fresh`, in a process without threads that has imported all; prints what was found as JSON.
"""

import json
import os
import pickle
import random
import sys
import tempfile
import time
from pathlib import Path

from research.torture import disks, files, kills
from research.torture.damage import ANY, JSON
from research.torture.findings import Plan
from research.torture.formats import Format
from research.torture.house import House

ROWS = Path("data/rows.jsonl")


def _unpickles() -> int:
    pickle.loads(ROWS.read_bytes())
    return 0


def _hangs() -> int:
    while ROWS.is_file():
        time.sleep(0.1)
    return 0


def _half_writes() -> int:
    Path("answers.jsonl").write_text('{"a": 1}\n')
    print("spinformer read: it failed", file=sys.stderr)
    return 2


def _says_nothing() -> int:
    return 2


def _unforeseen() -> int:
    from spinformer.cli.failures import explain_failure

    return explain_failure("read", KeyError("x"))


def _takes_memory() -> int:
    return len(bytearray(os.urandom(1 << 20) * 600)) * 0


def _dies() -> int:
    os.abort()


def _no_numbers() -> int:
    Path("found.json").write_text(json.dumps({"a": float("nan")}))
    return 0


BROKEN = {
    "unpickles": (_unpickles, "pickled"),
    "hangs": (_hangs, "cut"),
    "half-writes": (_half_writes, "cut"),
    "says nothing": (_says_nothing, "cut"),
    "unforeseen": (_unforeseen, "cut"),
    "traceback": (lambda: json.loads("{"), "cut"),
    "dies": (_dies, "cut"),
    "no numbers": (_no_numbers, "cut"),
}


def broken_readers(house: House) -> dict[str, list[str]]:
    """What is found wrong with each of them."""
    files.SECONDS = 2.0
    found = {}
    for name, (action, damage) in BROKEN.items():
        one = Format(name, str(ROWS), ("data",), action, {**ANY, **JSON})
        found[name] = files.trial(one, damage, house, random.Random(0))[1]
    return found


def broken_training() -> list[str]:
    """A training that is resumed with another seed."""
    whole = kills.TRAININGS[2]
    other = kills.Training(whole.name, whole.parts, whole.words, f"{whole.words} --seed 5", whole.final)
    return kills.work(Plan(3, 0.02), (other,)).failures


def broken_writer() -> list[str]:
    """`predict` as if it wrote to its file directly."""
    from contextlib import contextmanager

    from spinformer.cli import predict

    @contextmanager
    def directly(path):
        path.write_text("")
        yield path

    predict.atomic_write = directly
    return disks.work(Plan(2, 0.02), (disks.WRITERS[-1],)).failures


def main() -> None:
    """Print what was found."""
    found = {
        "files": vars(
            files.work(
                Plan(1, 0.02), ("rows.jsonl to predict", "rows.tsv to evaluate", "code in a model", "result record")
            )
        ),
        "kills": vars(kills.work(Plan(2, 0.02), (kills.TRAININGS[2],))),
        "disks": vars(disks.work(Plan(0, 0.05), (disks.WRITERS[-1],))),
        "broken training": broken_training(),
        "broken writer": broken_writer(),
    }
    with tempfile.TemporaryDirectory() as place:
        found["broken readers"] = broken_readers(House(Path(place)))
    print(json.dumps(found))
