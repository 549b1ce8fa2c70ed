"""One result of the runs of several: `python tools/gather.py NAME FILE...` writes results/NAME.json.

For rows of a table that were trained by several calls of `spinformer reproduce nli`, on machines that were gone after
each. A run in a later file takes the place of the same row and seed in an earlier one.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from spinformer import results
from spinformer.experiments.nli_stages import means

ROOT = Path(__file__).resolve().parent.parent


def gather(records: list[dict[str, Any]]) -> dict[str, Any]:
    """All runs and their means, and where they came from."""
    runs = {(run["job"], run["seed"]): run for record in records for run in record["outcome"]["runs"]}
    kept = list(runs.values())
    sources: list[dict[str, Any]] = []
    for record in records:  # a gathered one brings its own
        own = {name: record[name] for name in ("command", "config", "commit", "written", "hardware")}
        sources += record["outcome"].get("sources", [own])
    return {"runs": kept, "means": means(kept), "sources": sources}


def main() -> None:
    """Gather the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    args = parser.parse_args()
    records = [json.loads(path.read_text()) for path in args.files]
    if any(record["data"] != records[0]["data"] for record in records):
        raise SystemExit(f"these were not trained on the same files: {', '.join(path.name for path in args.files)}")
    path = results.write(
        args.name,
        gather(records),
        command=f"python tools/gather.py {args.name} " + " ".join(path.name for path in args.files),
        config={**records[0]["config"], "rows": sorted({run["job"] for r in records for run in r["outcome"]["runs"]})},
        data=records[0]["data"],
        directory=args.results,
    )
    print(path)


if __name__ == "__main__":
    main()
