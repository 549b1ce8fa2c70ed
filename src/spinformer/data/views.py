"""Views of texts: each pair again with some of its words left out, for a teacher to label."""

import random
from dataclasses import replace

from spinformer import checks
from spinformer.data.texts import Texts, join


def views(texts: Texts, count: int, rate: float, seed: int) -> Texts:
    """`count` copies one after the other: the texts as they are, then each with words dropped with probability `rate`.

    Every text keeps at least one word. Labels are repeated, but what a thinned pair means is for a teacher to say.
    """
    checks.at_least("count", count, 1)
    if not 0 < rate < 1:
        raise ValueError(f"rate must be in (0, 1); got {rate}")
    draw = random.Random(seed)
    copies = [texts]
    for _ in range(count - 1):
        second = None if texts.second is None else [_thin(text, rate, draw) for text in texts.second]
        thinned = replace(texts, first=[_thin(text, rate, draw) for text in texts.first], second=second, dropped=0)
        copies.append(replace(thinned, digests=()))
    return join(copies)


def _thin(text: str, rate: float, draw: random.Random) -> str:
    words = text.split()
    kept = [word for word in words if draw.random() >= rate]
    return " ".join(kept) if kept else draw.choice(words)
