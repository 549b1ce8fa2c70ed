"""Views of texts: copies with words changed, or with another second text, for a teacher to label."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from spinformer._base import checks
from spinformer._base.parallel import parallel_map, workers
from spinformer.data.texts import Texts, join_texts


@dataclass(frozen=True)
class Changes:
    """Probabilities. drop: that a word is left out; replace: that it is replaced by one of its neighbours, where it has
    any; exchange: that the two texts of a pair are exchanged; partner: that the second text is replaced by one of
    another pair that is similar to the first, where there is any, and no words are changed.
    """

    drop: float = 0.1
    replace: float = 0.15
    exchange: float = 0.15
    partner: float = 0.4

    def __post_init__(self) -> None:
        for name, probability in self.__dict__.items():
            if not 0 <= probability < 1:
                raise ValueError(f"{name} must be in [0, 1); got {probability}")


def make_views(
    texts: Texts,
    count: int,
    changes: Changes,
    seed: int,
    neighbours: Mapping[str, Sequence[str]] | None = None,
    partners: Mapping[str, Sequence[str]] | None = None,
) -> Texts:
    """`count` copies one after the other: the texts as they are, then copies with words changed at random.

    Every text keeps at least one word. Labels are repeated, but only a teacher can tell the class of a changed pair.
    neighbours: of each word in lower case, those that may replace it (`nearest_words`); partners: of each first text,
    the second texts that it may be paired with (`nearest_seconds`).
    """
    checks.at_least("count", count, 1)

    def copy(number: int) -> tuple[list[str], list[str] | None]:
        draw = random.Random(f"{seed} {number}")
        if texts.second is None:
            return [_change_words(text, changes, neighbours or {}, draw) for text in texts.first], None
        first, second = [], []
        for pair in zip(texts.first, texts.second, strict=True):
            similar = (partners or {}).get(pair[0])
            if similar and draw.random() < changes.partner:
                one, other = pair[0], draw.choice(similar)
            else:
                one, other = (_change_words(text, changes, neighbours or {}, draw) for text in pair)
            if draw.random() < changes.exchange:
                one, other = other, one
            first.append(one)
            second.append(other)
        return first, second

    columns = parallel_map(copy, range(1, count), processes=workers(count * len(texts)))
    copies = [replace(texts, first=first, second=second, dropped=0, digests=()) for first, second in columns]
    return replace(join_texts([texts, *copies]), source=texts.source)


def _change_words(text: str, changes: Changes, neighbours: Mapping[str, Sequence[str]], draw: random.Random) -> str:
    words = text.split()
    result = []
    for word in words:
        number = draw.random()
        if number < changes.drop:
            continue
        if number < changes.drop + changes.replace:
            word = _replace_word(word, neighbours, draw)
        result.append(word)
    return " ".join(result) if result else draw.choice(words)


def _replace_word(word: str, neighbours: Mapping[str, Sequence[str]], draw: random.Random) -> str:
    """A neighbour with the punctuation that stood around the word, or the word itself where it has no neighbours."""
    inner = word.strip(".,;:!?\"'()")
    similar = neighbours.get(inner.lower())
    return word if not similar else word.replace(inner, draw.choice(similar), 1)
