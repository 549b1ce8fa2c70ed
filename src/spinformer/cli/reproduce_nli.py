"""Train and score every classifier of docs/nli.md: the search for a recipe, the heads, the larger encoder, and what
learns from it (in this order: teacher, pilot, distil, apart, taught).

Needs the corpora as files: snli_train, snli_dev, snli_test, mnli_train, mnli_dev_matched, breaking_nli, monli,
hans_regenerated, sick_test (.jsonl.gz, with premise, hypothesis and label), and a GPU.
Stopped, a stage goes on where it was when started again: runs that are on file in RUNS are not repeated.
"""

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spinformer import checks, results
from spinformer.experiments.nli import DEV, TESTS, TRAIN, Job, Place, perform, prepare
from spinformer.experiments.nli_stages import SEEDS, stage, summary

STAGES = ("tune", "where", "base", "heads", "teacher", "pilot", "distil", "apart", "taught", "gate", "single")
LEARNING = ("pilot", "distil", "taught")  # from the model of stage teacher


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--stage", choices=STAGES, required=True, help="which runs")
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--encoder", action="append", default=[], metavar="NAME=FOLDER", help="minilm=..., mpnet=...")
    parser.add_argument("--vectors", type=Path, help="GloVe file, for stage base")
    parser.add_argument("--runs", type=Path, default=Path("runs/nli"), help="folder for models (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time (default 1)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="of each row, by number (default 0 1 2)")
    parser.add_argument(
        "--change",
        type=json.loads,
        default={},
        metavar="JSON",
        help="options that every run takes besides its recipe's",
    )
    parser.add_argument("--name", help="of the result (default nli-STAGE)")
    parser.add_argument("--only", nargs="+", help="names of the rows to run (default all)")
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder for the JSON (default results)")


def run(args: argparse.Namespace) -> int:
    """Run one stage and write results/nli-STAGE.json."""
    checks.seeds("--seeds", args.seeds)
    if args.stage == "apart" and args.change:
        raise ValueError("stage apart trains nothing: it takes no --change")
    encoders = {}
    for entry in args.encoder:
        name, mark, folder = entry.partition("=")
        if not mark:
            raise ValueError(f"--encoder must be NAME=FOLDER; got {entry!r}")
        encoders[name] = folder
    place = Place(args.data, encoders, args.vectors, args.runs)
    missing = [name for name in (DEV, *TESTS, *TRAIN) if not (args.data / f"{name}.jsonl.gz").is_file()]
    if missing:
        raise FileNotFoundError(f"{args.data} lacks {', '.join(f'{name}.jsonl.gz' for name in missing)}")
    planned, sets = stage(args.stage, args.seeds, args.runs)
    jobs = _chosen(planned, args)
    given = {Path(job.changes["encoder"]) for job in jobs if "encoder" in job.changes}
    awaited = sorted(str(path) for path in given if path.is_relative_to(args.runs) and not path.is_dir())
    if awaited:
        raise FileNotFoundError(f"there is no encoder {', '.join(awaited)} yet; run --stage distil first")
    if args.stage in LEARNING and args.jobs > 1:  # one alone finds what the one before it has left
        prepare(jobs[0], place)
    records = perform(jobs, place, stage=args.stage, sets=sets, workers=args.jobs)
    if not records:
        raise ValueError("no run came to its end")
    path = results.write(
        args.name or f"nli-{args.stage}",
        summary(records),
        command=_command(args),
        config={
            "stage": args.stage,
            "seeds": list(args.seeds),
            "change": args.change,
            "rows": sorted({job.name for job in jobs}),
        },
        data=records[0]["data"],
        directory=args.results,
    )
    print(f"{len(records)} of {len(jobs)} runs; {path}")
    return 0 if len(records) == len(jobs) else 1


def _command(args: argparse.Namespace) -> str:
    """What was asked for, without the places of this machine."""
    words = ["spinformer", "reproduce", "nli", "--stage", args.stage, "--seeds", *map(str, args.seeds)]
    words += ["--only", *args.only] if args.only else []
    words += ["--change", json.dumps(args.change)] if args.change else []
    return shlex.join(words + (["--name", args.name] if args.name else []))


def _chosen(jobs: Sequence[Job], args: argparse.Namespace) -> list[Job]:
    """Those whose rows are asked for, with the changes that are asked for."""
    if args.only:
        jobs = [job for job in jobs if job.name in args.only]
        if not jobs:
            raise ValueError(f"no row of stage {args.stage} is named {', '.join(args.only)}")
    return [replace(job, changes={**job.changes, **args.change}) for job in jobs]
