"""Explain a corpus with several processes: how long it takes, and that no row is lost or doubled, whatever happens.

The first COUNT texts of FILES are explained with words and pairs into one Parquet file, as a user would do it: by
`torchrun -m spinformer explain`. Then the first FEW of them by one process, by two, and by one that is killed at random
moments and started again: the three files must be the same. Time counts from the first process's start to the file.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from research.commands.options import add_results
from spinformer._base import checks, records
from spinformer._base.files import atomic_text, sha256
from spinformer._base.progress import progress
from spinformer.cli.options import add_device, weight_digests

COMMAND = "spinformer reproduce corpus"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--model", required=True, help="folder of a classifier")
    parser.add_argument("--game", help="folder of its game (default the model's own)")
    parser.add_argument("--texts", nargs="+", required=True, help="files of single texts")
    parser.add_argument("--count", type=int, default=100_000, help="texts to explain (default %(default)s)")
    parser.add_argument("--few", type=int, default=5_000, help="texts to explain again (default %(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the texts (default %(default)s)")
    parser.add_argument("--kills", type=int, default=10, help="times that a run is killed (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills (default %(default)s)")
    parser.add_argument("--runs", type=Path, default=Path("runs/corpus"), help="folder (default %(default)s)")
    add_results(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Explain, compare, and write the result `corpus-gpu` or `corpus-cpu`."""
    from spinformer.data.sources import load_texts

    for name in ("count", "few", "processes"):
        checks.at_least(f"--{name}", getattr(args, name), 1)
    checks.at_least("--kills", args.kills, 0)
    sources = [load_texts(file, labelled=False) for file in args.texts]
    texts = [text for source in sources for text in source.first][: args.count]
    if len(texts) < args.count:
        raise ValueError(f"--count must be at most the {len(texts):,} texts of --texts; got {args.count:,}")
    shutil.rmtree(args.runs, ignore_errors=True)  # parts of an earlier run would count as time that was not taken
    args.runs.mkdir(parents=True)
    whole, few = args.runs / "all.jsonl", args.runs / "few.jsonl"
    for path, some in ((whole, texts), (few, texts[: args.few])):
        atomic_text(path, "".join(json.dumps({"text": text}) + "\n" for text in some))
    taken = _explain(args, whole, args.runs / "all.parquet", args.processes)
    alone = _explain(args, few, args.runs / "one.parquet", 1)
    _explain(args, few, args.runs / "two.parquet", 2)
    moments = random.Random(args.seed)
    for _ in progress(range(args.kills), "kills"):
        _explain(args, few, args.runs / "killed.parquet", 1, kill=moments.uniform(0, alone))
    _explain(args, few, args.runs / "killed.parquet", 1)
    files = [sha256(args.runs / f"{name}.parquet") for name in ("one", "two", "killed")]
    outcome = {
        "texts": len(texts),
        "words": sum(len(text.split()) for text in texts) / len(texts),
        "processes": args.processes,
        "seconds": taken,
        "rows_once": _rows(args.runs / "all.parquet") == texts,
        "few": args.few,
        "few_seconds": alone,
        "kills": args.kills,
        "same_by_two": files[1] == files[0],
        "same_after_kills": files[2] == files[0],
    }
    path = records.write(
        "corpus-cpu" if args.device == "cpu" else "corpus-gpu",
        outcome,
        command=f"{COMMAND} --model MODEL --texts FILES --processes {args.processes}",
        config={name: getattr(args, name) for name in ("count", "few", "processes", "kills", "seed")},
        data={name: digest for source in sources for name, digest in source.digests} | weight_digests(args.model),
        directory=args.results,
    )
    print(json.dumps(outcome), path, sep="\n")
    return int(not (outcome["rows_once"] and outcome["same_by_two"] and outcome["same_after_kills"]))


def _explain(args: argparse.Namespace, texts: Path, output: Path, processes: int, kill: float | None = None) -> float:
    """The seconds that a run takes; kill: seconds after which its one process is killed."""
    several = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)] if processes > 1 else []
    words = [sys.executable, *several, "-m", "spinformer"]
    words += ["explain", args.model, str(texts), "--output", str(output), "--device", args.device, "--quiet"]
    words += ["--game", args.game] if args.game else []
    start = time.perf_counter()
    environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        _, errors = process.communicate(timeout=kill)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"explaining {texts.name} failed: {errors[-2000:]}")
    return time.perf_counter() - start


def _rows(path: Path) -> list[Any] | None:
    """The texts of a Parquet file, in its order; None where a row is missing or there twice."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path, columns=["row", "text"])
    rows = table.column("row").to_pylist()
    return table.column("text").to_pylist() if rows == list(range(len(rows))) else None
