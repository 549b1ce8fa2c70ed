"""Views of texts: each pair again with some of its words changed, for a teacher to label."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from spinformer import checks
from spinformer.data.texts import Texts, join

BLOCK = 2048  # words whose neighbours are found at once


@dataclass(frozen=True)
class Changes:
    """Chances. drop: that a word is left out; replace: that it gives way to one of its neighbours, where it has any;
    exchange: that the two texts of a pair change places.
    """

    drop: float = 0.1
    replace: float = 0.15
    exchange: float = 0.15

    def __post_init__(self) -> None:
        for name, chance in self.__dict__.items():
            if not 0 <= chance < 1:
                raise ValueError(f"{name} must be in [0, 1); got {chance}")


def views(
    texts: Texts, count: int, changes: Changes, seed: int, neighbours: Mapping[str, Sequence[str]] | None = None
) -> Texts:
    """`count` copies one after the other: the texts as they are, then each with its words changed at random.

    Every text keeps at least one word. Labels are repeated, but what a changed pair means is for a teacher to say.
    neighbours: of each word in small letters, those that may stand in its place (`nearest_words`).
    """
    checks.at_least("count", count, 1)
    draw, table = random.Random(seed), neighbours or {}
    copies = [texts]
    for _ in range(count - 1):
        first = [_changed(text, changes, table, draw) for text in texts.first]
        second = None if texts.second is None else [_changed(text, changes, table, draw) for text in texts.second]
        if second is not None:
            for row in range(len(first)):
                if draw.random() < changes.exchange:
                    first[row], second[row] = second[row], first[row]
        copies.append(replace(texts, first=first, second=second, dropped=0, digests=()))
    return replace(join(copies), source=texts.source)


def nearest_words(words: Sequence[str], vectors: Tensor, count: int = 8) -> dict[str, tuple[str, ...]]:
    """For each word the `count` others whose vectors, (N, d), have the largest cosine with its own."""
    checks.shape("vectors", vectors, (len(words), vectors.shape[-1]))
    checks.at_least("count", count, 1)
    if len(words) <= count:
        return {}
    unit = functional.normalize(vectors.float(), dim=-1)
    found: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(words), BLOCK):
        near = unit[start : start + BLOCK] @ unit.T
        own = torch.arange(start, start + len(near), device=near.device)
        near[torch.arange(len(near), device=near.device), own] = -torch.inf
        for place, row in enumerate(near.topk(count).indices.tolist()):
            found[words[start + place]] = tuple(words[other] for other in row)
    return found


def _changed(text: str, changes: Changes, neighbours: Mapping[str, Sequence[str]], draw: random.Random) -> str:
    words = text.split()
    kept = []
    for word in words:
        chance = draw.random()
        if chance < changes.drop:
            continue
        if chance < changes.drop + changes.replace:
            word = _replaced(word, neighbours, draw)
        kept.append(word)
    return " ".join(kept) if kept else draw.choice(words)


def _replaced(word: str, neighbours: Mapping[str, Sequence[str]], draw: random.Random) -> str:
    """A neighbour with the marks that stood around the word, or the word itself where it has no neighbours."""
    inner = word.strip(".,;:!?\"'()")
    near = neighbours.get(inner.lower())
    return word if not near else word.replace(inner, draw.choice(near), 1)
