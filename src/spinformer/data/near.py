"""What is near in meaning: words that may stand for a word, texts that may be paired with a text."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from spinformer import checks

BLOCK = 1024  # rows whose neighbours are found at once
MOST_OWN = 64  # second texts of one first text that are looked past; one that has more may get fewer partners


def nearest(queries: Tensor, keys: Tensor, count: int) -> Tensor:
    """(N, count) places in `keys`, (M, d), of the largest cosines with each row of `queries`, (N, d); nearest first."""
    checks.at_least("count", count, 1)
    if count > len(keys):
        raise ValueError(f"count must be at most {len(keys)}, the number of keys; got {count}")
    ours, theirs = functional.normalize(queries.float(), dim=-1), functional.normalize(keys.float(), dim=-1)
    blocks = [(block @ theirs.T).topk(count).indices for block in ours.split(BLOCK)]
    return torch.cat(blocks).cpu()


def nearest_words(words: Sequence[str], vectors: Tensor, count: int = 8) -> dict[str, tuple[str, ...]]:
    """For each word the `count` others whose vectors, (N, d), have the largest cosine with its own."""
    checks.shape("vectors", vectors, (len(words), vectors.shape[-1]))
    checks.at_least("count", count, 1)
    if len(words) <= count:
        return {}
    found = nearest(vectors, vectors, count + 1).tolist()
    return {
        word: tuple(words[other] for other in row if other != place)[:count]
        for place, (word, row) in enumerate(zip(words, found, strict=True))
    }


def nearest_seconds(
    first: Sequence[str], second: Sequence[str], vectors: Mapping[str, Tensor], count: int
) -> dict[str, tuple[str, ...]]:
    """For each first text the `count` second texts of other pairs whose vectors are nearest to its own.

    vectors: "first" and "second", one row for each distinct text of that side in the order of its first occurrence.
    """
    ours, theirs = list(dict.fromkeys(first)), list(dict.fromkeys(second))
    own: dict[str, set[str]] = {}
    for one, other in zip(first, second, strict=True):
        own.setdefault(one, set()).add(other)
    spare = min(MOST_OWN, max(map(len, own.values()), default=0))  # its own may be the nearest of all
    if len(theirs) < count + spare:
        return {}
    found = nearest(vectors["first"], vectors["second"], count + spare).tolist()
    near = {
        text: tuple(theirs[place] for place in row if theirs[place] not in own[text])[:count]
        for text, row in zip(ours, found, strict=True)
    }
    return {text: others for text, others in near.items() if others}
