"""Sentences and spans as players."""

import pytest
import torch

from spinformer.data.players import group_words, groups_of, sentence_spans
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from tests.tiny import tokenizer

FIRST, SECOND = "the man runs. a dog sleeps outside! red", "not a cat. two dogs"


def pair_words():
    return split_words(tokenizer(), Texts([FIRST], [SECOND]), 64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I like it. It is good!  Yes", ["I like it.", "It is good!", "Yes"]),
        ("Mr. Smith said so... and left. J. R. Tolkien, e.g. here.", None),
        ('"Really?" he asked. "Yes."', ['"Really?" he asked.', '"Yes."']),
        ("It costs 3.14 in the U.S. now. Good.", ["It costs 3.14 in the U.S. now.", "Good."]),
        ("我喜欢它。你呢？好！", ["我喜欢它。", "你呢？", "好！"]),
        ("Title\n\nOne. Two.\n- item\n", ["Title", "One.", "Two.", "- item"]),
        ("no end", ["no end"]),
        (" \n ", []),
    ],
)
def test_sentences(text, expected):
    if expected is None:
        expected = ["Mr. Smith said so... and left.", "J. R. Tolkien, e.g. here."]
    assert [text[start:end] for start, end in sentence_spans(text)] == expected


def test_sentences_hold_every_word():
    words = pair_words()
    spans = [[sentence_spans(FIRST), sentence_spans(SECOND)]]
    players = group_words(words, [(FIRST, SECOND)], spans)
    assert players.words == (("the man runs.", "a dog sleeps outside!", "red", "not a cat.", "two dogs"),)
    assert players.sides == ((0, 0, 0, 1, 1),)
    assert bool((groups_of(players) >= 0).all())
    assert bool(((players.owner >= 0) == (words.owner >= 0)).all())
    assert players.parts is words


def test_a_span_has_all_words_that_it_touches_and_others_are_always_there():
    words = pair_words()
    players = group_words(words, [(FIRST, SECOND)], [[[(5, 9)], [(0, 3)]]])  # "an r" of "man runs"
    assert players.words == (("man runs", "not"),)
    nobody = torch.zeros(1, 1, 2, dtype=torch.bool)
    hidden = ~players.tokens(nobody)[0, 0]
    names = [words.words[0][index] for index in sorted(set(words.owner[0][hidden].tolist()))]
    assert names == ["man", "runs", "not"]


def test_players_of_a_batch_keep_their_rows():
    texts = Texts([FIRST, "a dog. a cat. red"])
    words = split_words(tokenizer(), texts, 64)
    players = group_words(words, [(text,) for text in texts.first], [[sentence_spans(text)] for text in texts.first])
    second = players.rows(1, 2)
    assert second.words == (("a dog.", "a cat.", "red"),)
    assert second.parts is not None
    assert second.parts.words == (("a", "dog", ".", "a", "cat", ".", "red"),)
    assert groups_of(second)[0, :7].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert bool((groups_of(second)[0, 7:] == -1).all())  # padding


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 3), (2, 7)], "spans must not share a word; two of them hold 'the'"),
        ([(3, 3)], r"a span must be two numbers from-to within the text's 39 characters; got \(3, 3\)"),
        ([(0, 99)], "a span must be two numbers"),
        ([(0, 3, 5)], "a span must be two numbers"),
        (["man"], "a span must be two numbers"),
        ([], "expected a span with a word that the model reads; got none"),
    ],
)
def test_bad_spans(spans, message):
    words = split_words(tokenizer(), Texts([FIRST]), 64)
    with pytest.raises(ValueError, match=message):
        group_words(words, [(FIRST,)], [[spans]])


def test_spans_for_each_text():
    with pytest.raises(ValueError, match="expected spans for each of 2 texts; got 1"):
        group_words(pair_words(), [(FIRST, SECOND)], [[[(0, 3)]]])
