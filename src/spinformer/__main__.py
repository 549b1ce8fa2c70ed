"""`python -m spinformer`: the command line without an installed script."""

import sys

from spinformer.cli import main

sys.exit(main())
