"""Fill README.md and docs/*.md with the figures and tables of research/results (`make docs`).

A document marks a figure as `<!--=NAME:PATH:FORMAT-->...<!--/=-->`: a value of research/results/NAME.json, where PATH
leads through its outcome with dots and FORMAT is as in Python's format(). It marks a table as
`<!--table=NAME-->...<!--/table-->`: a function of `research.reports`. What stands between the marks is replaced.
"""

import argparse
import sys
from pathlib import Path

from research.paths import DOCS, RESULTS, ROOT
from research.reports import render


def documents() -> list[Path]:
    """Every document that may quote a result."""
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def main() -> int:
    """Render the documents or, with --check, list those that differ from the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a document differs")
    args = parser.parse_args()
    stale = []
    for path in documents():
        text = path.read_text()
        rendered = render(text, RESULTS)
        if rendered != text:
            stale.append(path.relative_to(ROOT))
            if not args.check:
                path.write_text(rendered)
    for path in stale:
        print(("out of date: " if args.check else "rendered: ") + str(path))
    return int(bool(stale) and args.check)


if __name__ == "__main__":
    sys.exit(main())
