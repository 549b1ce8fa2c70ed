"""Explanations of sentences, of spans, and of the words of the sentences that matter."""

from itertools import combinations
from math import factorial

import pytest
import torch

from spinformer.cli import main
from spinformer.data.players import group_words, groups_of, sentence_spans
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain import Explainer, Explanation, players
from tests.tiny import tokenizer

FIRST, SECOND = "the man runs. a dog sleeps outside. the red cat eats", "not a cat. two dogs inside"
SENTENCES = ("the man runs.", "a dog sleeps outside.", "the red cat eats", "not a cat.", "two dogs inside")


@pytest.fixture(scope="module")
def explainer(model):
    return Explainer(model, tokenizer())


def merged():
    words = split_words(tokenizer(), Texts([FIRST], [SECOND]), 64)
    return group_words(words, [(FIRST, SECOND)], [[sentence_spans(FIRST), sentence_spans(SECOND)]])


def shapley(value, count):
    """By the definition, over all subsets."""
    found = []
    for player in range(count):
        others = [each for each in range(count) if each != player]
        total = 0.0
        for size in range(count):
            weight = factorial(size) * factorial(count - size - 1) / factorial(count)
            for subset in combinations(others, size):
                total += weight * (value({*subset, player}) - value(set(subset)))
        found.append(total)
    return found


def test_sentences_without_a_game_are_the_classifiers_own(model):
    bare = Explainer(model, tokenizer())
    found = bare(FIRST, SECOND, method="kernel-shap", players="sentences")
    assert tuple(word.text for word in found.words) == SENTENCES
    assert found.players == "sentences"
    sentences, target = merged(), list(found.probabilities).index(found.target)

    def value(members):
        coalition = torch.tensor([[[index in members for index in range(5)]]])
        return float(bare.classifier.probabilities(sentences, coalition)[0, 0, target])

    assert found.importance == pytest.approx(shapley(value, 5), abs=1e-5)


def test_the_game_of_sentences_is_that_of_their_words(explainer):
    sentences = merged()
    assert sentences.parts is not None
    groups = groups_of(sentences)[0]
    whole = explainer.grounded.games(sentences.parts).game()
    game = explainer.grounded.games(sentences).game()
    draws = torch.rand(1, 12, 5, generator=torch.Generator().manual_seed(0)) < 0.5
    assert torch.allclose(game.evaluate(draws), whole.evaluate(draws[:, :, groups]), atol=1e-6)
    assert torch.allclose(game.evaluate_rows([0], draws), whole.evaluate(draws[:, :, groups]), atol=1e-6)


def test_a_game_keeps_words_of_no_player(explainer):
    words = split_words(tokenizer(), Texts([FIRST, "a dog"]), 64)
    spans = [[[(0, 3), (14, 19)]], [[(0, 1)]]]
    some = group_words(words, [(FIRST,), ("a dog",)], spans)
    whole = explainer.grounded.games(words).game()
    game = explainer.grounded.games(some).game(whole.target)
    nobody = words.mask.clone()
    nobody[groups_of(some) >= 0] = False
    empty = game.evaluate(torch.zeros(2, 1, 2, dtype=torch.bool))
    assert torch.allclose(empty, whole.evaluate(nobody[:, None]), atol=1e-6)


@pytest.mark.parametrize("call", [{}, {"passes": 8}, {"method": "leave-one-out"}, {"method": "gradient-times-input"}])
def test_every_kind_of_method_scores_sentences(explainer, call):
    found = explainer(FIRST, SECOND, players="sentences", **call)
    assert tuple(word.text for word in found.words) == SENTENCES
    if found.method == "shapley":
        assert found.base_value + sum(found.importance) == pytest.approx(found.full_value, abs=1e-4)


def test_a_text_alone_and_among_others(explainer):
    texts = [FIRST, "a cat. two dogs", "red dog"]
    together = explainer(texts, players="sentences")
    for text, found in zip(texts, together, strict=True):
        alone = explainer(text, players="sentences")
        assert alone.importance == pytest.approx(found.importance, abs=1e-5)


def test_spans_of_one_text_of_a_pair_and_of_several(explainer):
    one = explainer(FIRST, players=[(0, 7), (14, 19)])
    assert [word.text for word in one.words] == ["the man", "a dog"]
    assert one.players == "spans"
    pair = explainer(FIRST, SECOND, players=([(0, 7)], [(0, 3)]))
    assert [(word.text, word.side) for word in pair.words] == [("the man", 0), ("not", 1)]
    several = explainer([FIRST, "red dog"], players=[[(0, 7)], [(0, 3), (4, 7)]])
    assert [[word.text for word in each.words] for each in several] == [["the man"], ["red", "dog"]]


def test_the_error_of_other_players_is_said_to_be_a_guess(explainer):
    notes = explainer(FIRST, players="sentences").notes
    measured = explainer.grounded.head.misfit is not None
    assert any("measured" in note for note in notes)
    assert measured == any("measured on words" in note for note in notes)


class TestHierarchical:
    def test_strong_sentences_by_words_and_others_whole(self, explainer, monkeypatch):
        monkeypatch.setattr(players, "OPENED", 7)
        found = explainer(FIRST, SECOND, players="hierarchical")
        by_sentence = explainer(FIRST, SECOND, players="sentences")
        strongest = max(by_sentence.words, key=lambda word: abs(word.importance)).text
        names = [word.text for word in found.words]
        assert found.players == "hierarchical"
        assert strongest not in names
        assert set(strongest.rstrip(".").split()) <= set(names)
        assert any(sentence in names for sentence in SENTENCES)
        assert found.passes == 2
        assert found.base_value + sum(found.importance) == pytest.approx(found.full_value, abs=1e-4)
        assert found.notes[0].endswith(" of 5 sentences, the strongest, by words; the others whole")

    def test_short_texts_by_words(self, explainer):
        found = explainer(FIRST, SECOND, players="hierarchical")
        assert found == explainer(FIRST, SECOND)
        assert found.players == "words"

    def test_one_long_sentence_is_opened_whole(self, explainer, monkeypatch):
        monkeypatch.setattr(players, "OPENED", 2)
        found = explainer("the man eats outside", players="hierarchical")
        assert [word.text for word in found.words] == ["the", "man", "eats", "outside"]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("letters", ValueError, "players must be one of"),
        (3, TypeError, "players must be"),
        ([(0, 3), (4, 7)], ValueError, "players must have the spans of each of 1 texts; got those of 2"),
        ([3], TypeError, "players must be a kind, or lists of spans"),
    ],
)
def test_bad_players(explainer, value, error, message):
    with pytest.raises(error, match=message):
        explainer([FIRST], players=value)


def test_players_of_a_pair_are_two_lists(explainer):
    with pytest.raises(ValueError, match="players of a pair must be spans of its first and of its second text"):
        explainer(FIRST, SECOND, players=[(0, 3), (4, 7), (8, 9)])


def test_saved_with_its_players(explainer, tmp_path):
    found = explainer(FIRST, players="sentences")
    assert Explanation.load(found.save(tmp_path / "one.json")) == found


def test_shown_as_sentences(explainer):
    found = explainer(FIRST, SECOND, players="sentences")
    shown = str(found)
    assert "sentences by Shapley value" in shown
    assert "pairs of sentences by" in shown
    assert "no sentences" in shown
    assert "Pairs of sentences" in found.to_html()


def test_command(grounded_folder, capsys):
    assert main(["explain", str(grounded_folder), FIRST, SECOND, "--players", "sentences"]) == 0
    shown = capsys.readouterr().out
    assert "a dog sleeps outside" in shown
    assert "\n\n  sentence " in shown
