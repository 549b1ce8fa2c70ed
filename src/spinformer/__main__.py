"""`python -m spinformer`: the command line without an installed script."""

import sys

from spinformer.cli import main

if __name__ == "__main__":
    sys.exit(main())
