"""A classifier with its game, from a folder."""

from pathlib import Path
from typing import Any

from spinformer.explain.grounded import GroundedClassifier, find_game_head


def load_game(model: Any, folder: Path) -> GroundedClassifier:
    """The classifier with the game head in `folder`, or with the one that it was trained with."""
    head = find_game_head(model, folder)
    if head is None:
        raise ValueError(f"{folder} has no game: `spinformer ground` learns one")
    return GroundedClassifier(model, head)
