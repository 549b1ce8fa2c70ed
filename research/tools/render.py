"""Fill README.md and the pages of docs/ with the figures and tables of research/results (`make docs`).

A document marks a figure as `<!--=NAME:PATH:FORMAT-->...<!--/=-->`: a value of research/results/NAME.json, where PATH
leads through its outcome with dots and FORMAT is as in Python's format(). It marks a table as
`<!--table=NAME-->...<!--/table-->`: a function of `research.reports`. What stands between the marks is replaced.
docs/reproduction.md is made as a whole, by `research.reports.reproduction`.
"""

import argparse
import sys

from research.paths import RESULTS, ROOT
from research.reports.documents import stale_documents, write_documents


def main() -> int:
    """Render the documents or, with --check, list those that differ from the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a document differs")
    args = parser.parse_args()
    paths = stale_documents(RESULTS) if args.check else write_documents(RESULTS)
    for path in paths:
        print(("out of date: " if args.check else "rendered: ") + str(path.relative_to(ROOT)))
    return int(bool(paths) and args.check)


if __name__ == "__main__":
    sys.exit(main())
