"""Try to break the library: generated inputs, bad files, kills, full disks, hostile visitors, other versions.

Writes research/results/torture.json. A part that ends without a failure is not run again by --resume.
"""

import argparse
import importlib
import json
import time
from typing import Any

from research.commands.options import add_results
from research.torture.findings import Findings, Plan
from spinformer._base import records

NAME = "torture"  # of the result
# Module of research.torture, with run(plan) -> Findings.
PARTS = {
    "properties": "10,000 generated inputs to every public function and class",
    "files": "500 damaged, foreign and malicious files to every reader",
    "kills": "50 kills of trainings at random moments, each resumed to the same bits",
    "disks": "disks that are full or read-only, at random moments",
    "clients": "100 hostile requests to the page, and connections that never end",
    "visitors": "200 visitors of the page for a minute",
    "sessions": "5,000 sessions of the page, with bounded memory",
    "warnings": "the library imported and used under `python -W error`",
    "coverage": "lines of games, ising, attention and explain that tests run",
    "mutants": "changed lines of games and ising that tests notice",
    "versions": "the tests under other versions of Python and of the dependencies",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "parts:\n" + "\n".join(f"  {name:<12}{summary}" for name, summary in PARTS.items())
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help="parts below (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the cases that are tried (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--resume", action="store_true", help="keep parts of an earlier run that held at this scale")
    add_results(parser, "--output")


def run(args: argparse.Namespace) -> int:
    """Run the parts one after another; the exit status is 1 if anything failed."""
    if not 0 < args.scale <= 1:
        raise ValueError(f"--scale must be above 0 and at most 1; got {args.scale}")
    plan, passed = Plan(args.seed, args.scale), True
    parts = _earlier(args) if args.resume or args.only else {}
    for name in args.only or PARTS:
        if args.resume and _held(parts.get(name), plan):
            print(f"{name}: held in an earlier run")
            continue
        start = time.perf_counter()
        found: Findings = importlib.import_module(f"research.torture.{name}").run(plan)
        about = {"seconds": time.perf_counter() - start, "seed": args.seed, "scale": args.scale}
        parts[name] = {**vars(found), **about, "commit": records.commit()}
        _write(parts, args)
        passed = passed and not found.failures
        print(f"{name}: {json.dumps(found.cases)} {json.dumps(found.figures)}", flush=True)
        for failure in found.failures:
            print(f"  failed: {failure}", flush=True)
    return int(not passed)


def _held(part: dict[str, Any] | None, plan: Plan) -> bool:
    """Whether an earlier run of a part found nothing, with the same plan."""
    return part is not None and not part["failures"] and (part["seed"], part["scale"]) == (plan.seed, plan.scale)


def _earlier(args: argparse.Namespace) -> dict[str, Any]:
    """Parts of the result on file, or none."""
    if not (args.output / f"{NAME}.json").is_file():
        return {}
    return dict(records.read(NAME, args.output)["outcome"]["parts"])


def _write(parts: dict[str, Any], args: argparse.Namespace) -> None:
    """Write what was found so far, and whether every part was run and held."""
    passed = set(parts) == set(PARTS) and not any(part["failures"] for part in parts.values())
    records.write(
        NAME,
        {"passed": passed, "parts": {name: parts[name] for name in PARTS if name in parts}},
        command=f"spinformer torture --scale {args.scale:g} --seed {args.seed}",
        config={"scale": args.scale, "seed": args.seed},
        directory=args.output,
    )
