"""Join the runs of several results into one: `python -m research.tools.gather NAME FILE...`.

Use it when the rows of one table were made by several calls of `spinformer reproduce nli`, on different machines, or by
calls of `spinformer reproduce tasks`, `architectures` or `grounding --stage enough` that were stopped. A file is the
result of a call, or the record of one run that a call left in its folder RUNS. Where two files have the same row and
seed, the same task or architecture, or as many texts, the later file counts.
"""

import argparse
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from research.experiments.architectures import ARCHITECTURES
from research.experiments.nli_stages import mean_accuracies, summarize
from research.experiments.tasks import TASKS
from research.paths import RESULTS
from spinformer._base import records

KINDS: dict[str, Collection[str]] = {"tasks": TASKS, "architectures": ARCHITECTURES}  # commands whose rows have names


def gather(results: list[dict[str, Any]]) -> dict[str, Any]:
    """All runs, their mean accuracies, and the provenance of each result."""
    results = [record if "runs" in record["outcome"] else _alone(record) for record in results]
    by_seed = {(run["job"], run["seed"]): run for record in results for run in record["outcome"]["runs"]}
    runs = list(by_seed.values())
    return {"runs": runs, "means": mean_accuracies(runs), "sources": _sources(results)}


def gather_named(results: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The outcome of each row of one of KINDS, in its order, and the provenance of each result."""
    found: dict[str, Any] = {}
    for record in results:
        found |= record["outcome"].get(kind) or {record["name"]: record["outcome"]}
    return {kind: {name: found[name] for name in KINDS[kind] if name in found}, "sources": _sources(results)}


def gather_sizes(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The runs of `grounding --stage enough`, from few texts to many, and the provenance of each result."""
    runs = {run["texts"]: run for record in results for run in record["outcome"].get("runs", [record["outcome"]])}
    return {"runs": [runs[texts] for texts in sorted(runs)], "sources": _sources(results)}


def kind_of(record: dict[str, Any]) -> str | None:
    """Which of KINDS a result or the record of one of its rows is, or "enough"; None for runs of `reproduce nli`."""
    if record["command"].endswith("--stage enough") or record["name"].startswith("enough-"):
        return "enough"
    kinds = (kind for kind in KINDS if kind in record["outcome"] or record["command"] == f"spinformer reproduce {kind}")
    return next(kinds, None)


def _sources(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sources: list[dict[str, Any]] = []
    for record in results:
        provenance = {name: record[name] for name in ("command", "config", "commit", "written", "hardware")}
        sources += record["outcome"].get("sources", [provenance])  # a gathered result has several
    return sources


def _alone(record: dict[str, Any]) -> dict[str, Any]:
    """The result of a call that had this run alone."""
    config = {"seeds": [record["outcome"]["seed"]], "rows": [record["outcome"]["job"]]}
    return {**record, "config": config, "outcome": summarize([record])}


def main() -> None:
    """Gather the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the joint result")
    parser.add_argument("files", nargs="+", type=Path, help="results to join")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for it (default %(default)s)")
    args = parser.parse_args()
    results = [json.loads(path.read_text()) for path in args.files]
    kind = kind_of(results[0])
    if any(kind_of(record) != kind for record in results):
        raise SystemExit(f"these are results of different commands: {', '.join(path.name for path in args.files)}")
    if kind is None and any(record["data"] != results[0]["data"] for record in results):
        raise SystemExit(f"these were not trained on the same files: {', '.join(path.name for path in args.files)}")
    if kind == "enough":
        outcome = gather_sizes(results)
        rows, data = [run["texts"] for run in outcome["runs"]], results[0]["data"]
    elif kind is not None:
        outcome = gather_named(results, kind)
        rows = list(outcome[kind])
        data = {file: digest for row in outcome[kind].values() for file, digest in row.get("data", {}).items()}
    else:
        outcome = gather(results)
        rows, data = sorted({run["job"] for run in outcome["runs"]}), results[0]["data"]
    path = records.write(
        args.name,
        outcome,
        command=f"python -m research.tools.gather {args.name} " + " ".join(path.name for path in args.files),
        config={**results[0]["config"], "rows": rows},
        data=data,
        directory=args.results,
    )
    print(path)


if __name__ == "__main__":
    main()
