"""Join the runs of several results into one: `python -m research.tools.gather NAME FILE...`.

Use it when the rows of one table were trained by several calls of `spinformer reproduce nli`, on different machines.
A file is the result of a call, or the record of one run that a call left in its folder RUNS before it was stopped.
Where two files have the same row and seed, the run of the later file counts.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from research.experiments.nli_stages import mean_accuracies, summarize
from research.paths import RESULTS
from spinformer._base import records


def gather(results: list[dict[str, Any]]) -> dict[str, Any]:
    """All runs, their mean accuracies, and the provenance of each result."""
    results = [record if "runs" in record["outcome"] else _alone(record) for record in results]
    by_seed = {(run["job"], run["seed"]): run for record in results for run in record["outcome"]["runs"]}
    runs = list(by_seed.values())
    sources: list[dict[str, Any]] = []
    for record in results:
        provenance = {name: record[name] for name in ("command", "config", "commit", "written", "hardware")}
        sources += record["outcome"].get("sources", [provenance])  # a gathered result has several
    return {"runs": runs, "means": mean_accuracies(runs), "sources": sources}


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
    if any(record["data"] != results[0]["data"] for record in results):
        raise SystemExit(f"these were not trained on the same files: {', '.join(path.name for path in args.files)}")
    outcome = gather(results)
    path = records.write(
        args.name,
        outcome,
        command=f"python -m research.tools.gather {args.name} " + " ".join(path.name for path in args.files),
        config={**results[0]["config"], "rows": sorted({run["job"] for run in outcome["runs"]})},
        data=results[0]["data"],
        directory=args.results,
    )
    print(path)


if __name__ == "__main__":
    main()
