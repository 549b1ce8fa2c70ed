"""The classifier that commands use where none is named."""

import os
from pathlib import Path

VARIABLE, FOLDER = "SPINFORMER_MODEL", "checkpoints"
SMALL = "small"  # the name of the classifier inside the package
EMBEDDED = Path(__file__).resolve().parent / SMALL


def default_model() -> str:
    """What SPINFORMER_MODEL names, or the only model in `checkpoints/`, here or at the root of the repository."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    for root in (Path.cwd(), Path(__file__).resolve().parents[3]):
        folders = sorted(path.parent for path in (root / FOLDER).glob("*/config.json"))
        if len(folders) == 1:
            return str(folders[0])
        if folders:
            names = ", ".join(folder.name for folder in folders)
            raise ValueError(f"{FOLDER}/ holds several models ({names}); choose one with --model")
    raise FileNotFoundError(
        f"no model given and none in {FOLDER}/; name the folder of a classifier that has a game with --model or in "
        f"{VARIABLE}"
    )
