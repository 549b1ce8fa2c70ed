"""Fill README.md and docs/*.md with the figures in results/.

A document marks a figure as `<!--=NAME:PATH:FORMAT-->...<!--/=-->` (a value of results/NAME.json, PATH in
its outcome with dots, FORMAT as in Python's format()) and a table as `<!--table=NAME-->...<!--/table-->`
(a function of `spinformer.report`). What stands between the marks is replaced; `--check` only compares.
"""

import argparse
import sys
from pathlib import Path

from spinformer.report import render

ROOT = Path(__file__).resolve().parent.parent


def documents() -> list[Path]:
    """Every document that may quote a result."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> int:
    """Render or, with --check, report the documents that are out of step with results/."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a document is out of step")
    args = parser.parse_args()
    stale = []
    for path in documents():
        text = path.read_text()
        rendered = render(text, ROOT / "results")
        if rendered != text:
            stale.append(path.relative_to(ROOT))
            if not args.check:
                path.write_text(rendered)
    for path in stale:
        print(("out of step: " if args.check else "rendered: ") + str(path))
    return int(bool(stale) and args.check)


if __name__ == "__main__":
    sys.exit(main())
