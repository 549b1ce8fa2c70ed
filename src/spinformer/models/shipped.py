"""The classifiers that come with this package, by name: a small one inside of it, a larger one beside it in a clone."""

import os
from pathlib import Path

VARIABLE, FOLDER = "SPINFORMER_MODEL", "checkpoints"
SMALL = "small"
EMBEDDED = Path(__file__).resolve().parent / SMALL


def default_model() -> str:
    """The classifier that commands use where none is named: what SPINFORMER_MODEL names, or the small one."""
    named = os.environ.get(VARIABLE)
    if named:
        return named_model(named)
    if not _is_model(EMBEDDED):
        raise FileNotFoundError(
            f"this installation lacks its small classifier; name one that has a game with --model or in {VARIABLE}"
        )
    return str(EMBEDDED)


def named_model(name: str) -> str:
    """The folder of the classifier that comes under this name: "small", or in a clone one in checkpoints/.

    Any other name stays as it is. A folder of this name here comes first.
    """
    own = shipped_models().get(name)
    return name if own is None or Path(name).exists() else str(own)


def shipped_models() -> dict[str, Path]:
    """The classifiers that come with this package, with their folders: the small one, and those of the clone."""
    clone = Path(__file__).resolve().parents[3] / FOLDER
    folders = [EMBEDDED, *sorted(path.parent for path in clone.glob("*/config.json"))]
    return {folder.name: folder for folder in folders if _is_model(folder)}


def _is_model(folder: Path) -> bool:
    return (folder / "config.json").is_file()
