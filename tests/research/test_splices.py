"""Texts made from texts, to ground on."""

import random

import pytest

from research.experiments.splices import MAX_WORDS, SPLICE_WORDS, sentences, splice, with_long_splices, with_splices
from spinformer.data.texts import Texts

REVIEW = "A slow film. " * 30 + "Only its last ten minutes are worth seeing at all. <br /> Do not go and see it twice!"
TEXTS = ["it is a film like many others", "too short", "it is a film like many others", REVIEW]


def test_texts_once_and_sentences_of_long_ones():
    assert len(REVIEW.split()) > MAX_WORDS
    assert sentences(TEXTS) == [
        "it is a film like many others",
        "Only its last ten minutes are worth seeing at all.",
        "Do not go and see it twice!",
    ]


def test_splices_are_stretches_of_the_texts():
    whole, generator = sentences(TEXTS), random.Random(0)
    known = {word for text in whole for word in text.split()} | {",", ".", "but", "and"}
    for _ in range(50):
        words = splice(whole, generator).split()
        assert len(words) <= SPLICE_WORDS[1]
        assert set(words) <= known


def test_the_same_seed_gives_the_same_texts():
    texts = Texts(tuple(TEXTS))
    first, again, other = (with_splices(texts, 20, seed) for seed in (1, 1, 2))
    assert len(first) == 3 + 20
    assert first.fingerprint() == again.fingerprint() != other.fingerprint()
    with pytest.raises(ValueError, match="expected single texts to splice; got pairs"):
        with_splices(Texts(("a",), ("b",)), 3)


def test_long_splices_are_as_long_as_the_texts():
    long = tuple(" ".join(f"w{text}.{word} and so on here ." for word in range(20 + text)) for text in range(3))
    texts = Texts(long)
    first, again, other = (with_long_splices(texts, 12, seed) for seed in (1, 1, 2))
    assert first.first == again.first != other.first
    assert tuple(first.first[:3]) == long
    lengths = {len(text.split()) for text in long}
    assert {len(text.split()) for text in first.first[3:]} <= lengths
    known = {word for text in long for word in text.split()}
    assert all(set(text.split()) <= known for text in first.first)
    with pytest.raises(ValueError, match="expected single texts"):
        with_long_splices(Texts(("a",), ("b",)), 3)
