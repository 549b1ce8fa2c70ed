"""Options that several commands of research share."""

import argparse
from pathlib import Path

import torch

from research.paths import RESULTS


def add_results(parser: argparse.ArgumentParser, flag: str = "--results") -> None:
    """Add the folder that results are written to: by default the clone's, whatever the current folder is."""
    text = "folder for results (default: research/results of the clone)"
    parser.add_argument(flag, type=Path, default=RESULTS, metavar="FOLDER", help=text)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the device to compute on."""
    parser.add_argument(
        "--device",
        default="cuda" if torch.cuda.is_available() else "cpu",
        help="device to compute on (default: a GPU if there is one)",
    )
