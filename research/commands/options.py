"""Options that several commands of research share."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from research.paths import RESULTS


def add_results(parser: argparse.ArgumentParser, flag: str = "--results") -> None:
    """Add the folder that results are written to: by default the clone's, whatever the current folder is."""
    text = "folder for results (default: research/results of the clone)"
    parser.add_argument(flag, type=Path, default=RESULTS, metavar="FOLDER", help=text)


def add_encoders(parser: argparse.ArgumentParser) -> None:
    """Add the folders of encoders; `read_encoders` reads them."""
    parser.add_argument(
        "--encoder",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help="folder of an encoder, minilm=... or mpnet=...; may be repeated",
    )


def read_encoders(entries: Sequence[str], known: Sequence[str] = ()) -> dict[str, str]:
    """Folders of encoders by short name, from NAME=FOLDER; known: the names that there are, if not any will do."""
    expected = " or ".join(f"{name}=FOLDER" for name in known) or "NAME=FOLDER"
    encoders = {}
    for entry in entries:
        name, mark, folder = entry.partition("=")
        if not mark or (known and name not in known):
            raise ValueError(f"--encoder must be {expected}; got {entry!r}")
        encoders[name] = folder
    return encoders
