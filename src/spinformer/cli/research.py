"""Commands of `research/`, which lies beside the package in a clone of the repository and is not in the wheel."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import spinformer

PACKAGE = "research.commands"


def find_research() -> Path:
    """The root of the clone that the running package lies in, or FileNotFoundError if it lies in none.

    The current folder does not count: what is run must belong to the package that runs it.
    """
    root = Path(spinformer.__file__).resolve().parents[2]
    if not (root / "research" / "commands").is_dir():
        raise FileNotFoundError(
            "`spinformer bench` and `spinformer reproduce` need a clone of the repository: "
            "clone the spinformer repository and install it with pip install -e ."
        )
    return root


def load_command(name: str) -> ModuleType:
    """Import the module `research.commands.NAME` from the clone."""
    root = str(find_research())
    if sys.path[:1] != [root]:
        sys.path.insert(0, root)
    return importlib.import_module(f"{PACKAGE}.{name}")
