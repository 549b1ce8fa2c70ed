"""Options that several commands of research share."""

import argparse
from pathlib import Path

from research.paths import RESULTS


def add_results(parser: argparse.ArgumentParser, flag: str = "--results") -> None:
    """Add the folder that results are written to: by default the clone's, whatever the current folder is."""
    text = "folder for results (default: research/results of the clone)"
    parser.add_argument(flag, type=Path, default=RESULTS, metavar="FOLDER", help=text)
