"""Tables of what can be chosen by name, read from the registries of the package: no result is needed."""

import torch

from research.reports.markdown import markdown
from spinformer.explain.methods import all_methods
from spinformer.games.indices import INDICES, size_distribution
from spinformer.models.pooling import POOLING_HEADS

OTHERS = 4  # players besides those that are valued, for the weights of `indices`


def indices() -> str:
    """Every index: what it values, and how it weighs coalitions T of the other players, by their size."""
    rows = []
    for index in INDICES.values():
        weights = size_distribution(index, torch.tensor([OTHERS]), OTHERS + 1)[0]
        shares = ", ".join(f"{weight:.3f}" for weight in weights.tolist())
        rows.append([f"`{index.name}`", index.title, "pairs" if index.pairwise else "players", shares])
    header = ["name", "index", "values of", f"weight of \\|T\\| = 0, ..., {OTHERS} of {OTHERS} other players"]
    return markdown(header, rows, text_columns=4)


def pooling_heads() -> str:
    """Every pooling head."""
    rows = [[f"`{head.name}`", head.summary] for head in POOLING_HEADS.values()]
    return markdown(["name", "vector of the text"], rows, text_columns=2)


def methods() -> str:
    """Every explanation method, with the forward passes that a text of W words costs."""
    rows = [[f"`{method.name}`", method.summary, method.passes] for method in all_methods().values()]
    return markdown(["name", "score of a word", "passes"], rows, text_columns=2)
