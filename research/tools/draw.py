"""Draw the pictures of the documents that are made from results: docs/figures/exactness-NAME.svg.

python -m research.tools.draw
"""

import sys

from research.paths import RESULTS, ROOT
from research.reports.documents import draw_figures
from research.reports.exactness import PREFIX


def main() -> int:
    """Draw all of them, and say where they are."""
    paths = draw_figures(RESULTS)
    for path in paths:
        print(f"drawn: {path.relative_to(ROOT)}")
    if not paths:
        print(f"no result named {PREFIX}*.json in {RESULTS.name}/", file=sys.stderr)
    return int(not paths)


if __name__ == "__main__":
    sys.exit(main())
