"""More texts to ground a classifier on, made from texts of its kind. Grounding needs no labels.

A classifier of sentences is often trained on few: the 67,349 texts of SST-2 are phrases of 7,000 sentences, of 9
words in the mean, where a sentence has 19. A game learnt from these alone knows new sentences less well. So:

- texts of at least MIN_WORDS words, each once, and of longer texts (reviews) the sentences;
- splices: two or three of these joined by one of LINKS, and a stretch of SPLICE_WORDS words cut out of it.

A classifier of reviews is trained on few of them too. Of these, splices are as long as reviews are.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from spinformer.data.texts import Texts

MIN_WORDS, MAX_WORDS = 6, 60
SPLICE_WORDS = (8, 30)
LINKS = (" ", " , ", " but ", " and ", " . ", " , but ")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|<br\s*/?>")


def sentences(texts: Sequence[str]) -> list[str]:
    """The texts of MIN_WORDS to MAX_WORDS words, and the sentences of longer ones, each once, in order."""
    parts = (part for text in texts for part in _parts(text))
    return list(dict.fromkeys(part for part in parts if MIN_WORDS <= len(part.split()) <= MAX_WORDS))


def _parts(text: str) -> Iterator[str]:
    if len(text.split()) <= MAX_WORDS:
        yield text
    else:
        yield from (part.strip() for part in SENTENCE_END.split(text))


def splice(texts: Sequence[str], generator: random.Random) -> str:
    """A stretch of two or three texts, drawn at random and joined."""
    joined = generator.choice(LINKS).join(generator.choice(texts) for _ in range(generator.choice((2, 2, 3))))
    words, length = joined.split(), generator.randint(*SPLICE_WORDS)
    start = generator.randint(0, max(0, len(words) - length))
    return " ".join(words[start : start + length])


def with_splices(texts: Texts, count: int, seed: int = 0) -> Texts:
    """The sentences of single texts, and `count` splices of them."""
    whole, generator = _sentences_of(texts), random.Random(seed)
    rows = [*whole, *(splice(whole, generator) for _ in range(count))]
    return replace(texts, first=rows, labels=None, names=())


def with_long_splices(texts: Texts, count: int, seed: int = 0) -> Texts:
    """The long ones of single texts, and `count` splices of the sentences of all.

    Long: of more than MAX_WORDS words, or all where none is. Each splice is as long as a long text drawn at random.
    """
    parts, generator = _sentences_of(texts), random.Random(seed)
    whole = [text for text in texts.first if len(text.split()) > MAX_WORDS] or list(texts.first)
    lengths = [len(text.split()) for text in whole]
    rows = [*whole, *(_long_splice(parts, generator.choice(lengths), generator) for _ in range(count))]
    return replace(texts, first=rows, labels=None, names=())


def _sentences_of(texts: Texts) -> list[str]:
    if texts.paired:
        raise ValueError(f"{texts.source}: expected single texts to splice; got pairs")
    return sentences(texts.first)


def _long_splice(parts: Sequence[str], length: int, generator: random.Random) -> str:
    words: list[str] = []
    while len(words) < length:
        words += generator.choice(parts).split()
    return " ".join(words[:length])
