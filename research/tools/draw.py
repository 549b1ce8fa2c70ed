"""Draw the pictures of the documents that are made from results: docs/figures/exactness-NAME.svg.

python -m research.tools.draw
"""

import sys

from research.paths import DOCS, RESULTS
from research.reports.exactness import PREFIX, draw


def main() -> int:
    """Draw all of them, and say where they are."""
    paths = draw(RESULTS, DOCS / "figures")
    for path in paths:
        print(f"drawn: {path.relative_to(DOCS.parent)}")
    if not paths:
        print(f"no result named {PREFIX}*.json in {RESULTS.name}/", file=sys.stderr)
    return int(not paths)


if __name__ == "__main__":
    sys.exit(main())
