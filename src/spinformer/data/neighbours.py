"""Nearest neighbours by cosine: words that may replace a word, texts that may be paired with a text."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base import checks

BLOCK = 1024  # rows whose neighbours are searched at once
MAX_SKIPPED = 64  # second texts of a first text that are skipped; a text with more of them may get fewer partners


def nearest(queries: Tensor, keys: Tensor, count: int) -> Tensor:
    """(N, count) indices of the `keys`, (M, d), with the largest cosines to each of `queries`, (N, d), in order."""
    checks.at_least("count", count, 1)
    if count > len(keys):
        raise ValueError(f"count must be at most {len(keys)}, the number of keys; got {count}")
    queries, keys = functional.normalize(queries.float(), dim=-1), functional.normalize(keys.float(), dim=-1)
    blocks = [(block @ keys.T).topk(count).indices for block in queries.split(BLOCK)]
    return torch.cat(blocks).cpu()


def nearest_words(words: Sequence[str], vectors: Tensor, count: int = 8) -> dict[str, tuple[str, ...]]:
    """For each word the `count` other words whose vectors, of (N, d), are nearest."""
    checks.shape("vectors", vectors, (len(words), vectors.shape[-1]))
    checks.at_least("count", count, 1)
    if len(words) <= count:
        return {}
    neighbours = nearest(vectors, vectors, count + 1).tolist()
    return {
        word: tuple(words[other] for other in row if other != index)[:count]
        for index, (word, row) in enumerate(zip(words, neighbours, strict=True))
    }


def nearest_seconds(
    first: Sequence[str], second: Sequence[str], vectors: Mapping[str, Tensor], count: int
) -> dict[str, tuple[str, ...]]:
    """For each first text the `count` second texts of other pairs whose vectors are nearest to its vector.

    vectors: "first" and "second", one row for each distinct text of that side in the order of its first occurrence.
    """
    firsts, seconds = list(dict.fromkeys(first)), list(dict.fromkeys(second))
    paired: dict[str, set[str]] = {}
    for one, other in zip(first, second, strict=True):
        paired.setdefault(one, set()).add(other)
    skipped = min(MAX_SKIPPED, max(map(len, paired.values()), default=0))  # those of the same pairs may be nearest
    if len(seconds) < count + skipped:
        return {}
    neighbours = nearest(vectors["first"], vectors["second"], count + skipped).tolist()
    partners = {
        text: tuple(seconds[index] for index in row if seconds[index] not in paired[text])[:count]
        for text, row in zip(firsts, neighbours, strict=True)
    }
    return {text: others for text, others in partners.items() if others}
