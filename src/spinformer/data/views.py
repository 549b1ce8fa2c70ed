"""Views of texts: each pair again with words changed, or with another second text, for a teacher to label."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spinformer import checks
from spinformer.data.texts import Texts, join
from spinformer.parallel import spread, workers


@dataclass(frozen=True)
class Changes:
    """Chances. drop: that a word is left out; replace: that it gives way to one of its neighbours, where it has any;
    exchange: that the two texts of a pair change places; partner: that the second text gives way to one of another
    pair that is near to the first, where there is any, and no words are changed.
    """

    drop: float = 0.1
    replace: float = 0.15
    exchange: float = 0.15
    partner: float = 0.4

    def __post_init__(self) -> None:
        for name, chance in self.__dict__.items():
            if not 0 <= chance < 1:
                raise ValueError(f"{name} must be in [0, 1); got {chance}")


def views(
    texts: Texts,
    count: int,
    changes: Changes,
    seed: int,
    neighbours: Mapping[str, Sequence[str]] | None = None,
    partners: Mapping[str, Sequence[str]] | None = None,
) -> Texts:
    """`count` copies one after the other: the texts as they are, then each with its words changed at random.

    Every text keeps at least one word. Labels are repeated, but what a changed pair means is for a teacher to say.
    neighbours: of each word in small letters, those that may stand in its place (`nearest_words`); partners: of each
    first text, the second texts that it may be paired with (`nearest_seconds`).
    """
    checks.at_least("count", count, 1)

    def copy(number: int) -> tuple[list[str], list[str] | None]:
        draw = random.Random(f"{seed} {number}")
        if texts.second is None:
            return [_changed(text, changes, neighbours or {}, draw) for text in texts.first], None
        first, second = [], []
        for pair in zip(texts.first, texts.second, strict=True):
            near = (partners or {}).get(pair[0])
            if near and draw.random() < changes.partner:
                one, other = pair[0], draw.choice(near)
            else:
                one, other = (_changed(text, changes, neighbours or {}, draw) for text in pair)
            if draw.random() < changes.exchange:
                one, other = other, one
            first.append(one)
            second.append(other)
        return first, second

    found = spread(copy, range(1, count), processes=workers(count * len(texts)))
    copies = [replace(texts, first=first, second=second, dropped=0, digests=()) for first, second in found]
    return replace(join([texts, *copies]), source=texts.source)


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
