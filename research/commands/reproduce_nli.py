"""Train and score every classifier of docs/nli.md.

Needs a GPU and the corpora as files: snli_train, snli_dev, snli_test, mnli_train, mnli_dev_matched, breaking_nli,
monli, hans_regenerated, sick_test (.jsonl.gz, with premise, hypothesis and label). The stages paper, literal and
ablations need the first five alone. Stages with a teacher come after stage teacher: first pilot and distil, then apart
and taught, which use the encoders of distil.
A stage that was stopped continues when it is started again: finished runs in RUNS are not repeated.
"""

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from research.commands.options import add_encoders, add_results, read_encoders
from research.experiments.nli import DEV, TRAIN, Folders, Job, prepare_teacher, run_jobs
from research.experiments.nli_stages import SEEDS, STAGES, summarize
from spinformer._base import checks, records

WITH_TEACHER = ("pilot", "distil", "taught")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "stages:\n" + "\n".join(f"  {name:<10}{stage.summary}" for name, stage in STAGES.items())
    parser.add_argument("--stage", choices=STAGES, required=True, help="one of the stages below")
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    add_encoders(parser)
    parser.add_argument("--vectors", type=Path, help="GloVe file, for stage base")
    parser.add_argument("--runs", type=Path, default=Path("runs/nli"), help="folder for models (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time (default 1)")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="seeds of each row (default 0 1 2)")
    parser.add_argument(
        "--change",
        type=json.loads,
        default={},
        metavar="JSON",
        help="options that replace those of every recipe",
    )
    parser.add_argument("--name", help="name of the result (default nli-STAGE)")
    parser.add_argument("--only", nargs="+", help="names of the rows to run (default all)")
    add_results(parser)


def run(args: argparse.Namespace) -> int:
    """Run one stage and write its result."""
    checks.seeds("--seeds", args.seeds)
    if args.stage == "apart" and args.change:
        raise ValueError("stage apart trains nothing: it takes no --change")
    folders = Folders(args.data, read_encoders(args.encoder), args.vectors, args.runs)
    stage = STAGES[args.stage]
    needed = dict.fromkeys((DEV, *stage.sets, *TRAIN))
    missing = [name for name in needed if not (args.data / f"{name}.jsonl.gz").is_file()]
    if missing:
        raise FileNotFoundError(f"{args.data} lacks {', '.join(f'{name}.jsonl.gz' for name in missing)}")
    jobs = _chosen(stage.jobs(args.seeds, args.runs), args)
    encoders = {Path(job.changes["encoder"]) for job in jobs if "encoder" in job.changes}
    absent = sorted(str(path) for path in encoders if path.is_relative_to(args.runs) and not path.is_dir())
    if absent:
        raise FileNotFoundError(f"there is no encoder {', '.join(absent)} yet; run --stage distil first")
    if args.stage in WITH_TEACHER and args.jobs > 1:  # a single process needs no preparation: later jobs find the file
        prepare_teacher(jobs[0], folders)
    runs = run_jobs(jobs, folders, stage=args.stage, sets=stage.sets, workers=args.jobs, read=stage.read)
    if not runs:
        raise ValueError("every run failed")
    path = records.write(
        args.name or f"nli-{args.stage}",
        summarize(runs),
        command=_command(args),
        config={
            "stage": args.stage,
            "seeds": list(args.seeds),
            "change": args.change,
            "rows": sorted({job.name for job in jobs}),
        },
        data=runs[0]["data"],
        directory=args.results,
    )
    print(f"{len(runs)} of {len(jobs)} runs; {path}")
    return 0 if len(runs) == len(jobs) else 1


def _command(args: argparse.Namespace) -> str:
    """The command line without folders, which differ from machine to machine."""
    words = ["spinformer", "reproduce", "nli", "--stage", args.stage, "--seeds", *map(str, args.seeds)]
    words += ["--only", *args.only] if args.only else []
    words += ["--change", json.dumps(args.change)] if args.change else []
    return shlex.join(words + (["--name", args.name] if args.name else []))


def _chosen(jobs: Sequence[Job], args: argparse.Namespace) -> list[Job]:
    """The jobs of the rows in --only, with the options of --change."""
    if args.only:
        jobs = [job for job in jobs if job.name in args.only]
        if not jobs:
            raise ValueError(f"no row of stage {args.stage} is named {', '.join(args.only)}")
    return [replace(job, changes={**job.changes, **args.change}) for job in jobs]
