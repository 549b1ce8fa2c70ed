"""The registry of explanation methods: names, summaries, what each needs, new ones."""

import pytest
import torch

from spinformer.explain import Explainer
from spinformer.explain.methods import METHODS, Method, ScorerMethod, all_methods, get_method
from spinformer.games.indices import INDICES
from tests.explain.toys import bert, tokenizer, words

NAMES = [
    *("shapley", "banzhaf", "field", "attention", "kernel-shap", "shapley-sampling", "leave-one-out"),
    *("integrated-gradients", "gradient-times-input", "additive-explainer"),
    *("layer", "layer-field", "layer-shapley", "layer-banzhaf", "random"),
]


class Lengths:
    """score_i = letters of word i."""

    name, passes = "lengths", "0"

    def __call__(self, split, target=None):
        scores = torch.zeros(split.mask.shape)
        for row, texts in enumerate(split.words):
            scores[row, : len(texts)] = torch.tensor([float(len(text)) for text in texts])
        return scores


def test_one_name_for_each_method():
    assert list(all_methods()) == list(METHODS) == NAMES
    for name, method in all_methods().items():
        assert method.name == name == get_method(name).name
        assert isinstance(method, Method)
        assert method.passes
        assert method.summary
        assert "\n" not in method.summary
        assert len(method.summary) < 100
    with pytest.raises(ValueError, match=r"method must be one of 'shapley', 'banzhaf'.*'random'; got 'grounded'"):
        get_method("grounded")


def test_every_index_of_players_that_names_a_method_has_one():
    for index in INDICES.values():
        assert (index.method in all_methods()) == (index.order == 1)


def test_registering():
    method = ScorerMethod("lengths", "the letters of each word", "0", lambda context: Lengths())
    assert METHODS.register(method) is method
    try:
        assert get_method("lengths") is method
        assert list(all_methods()) == [*NAMES, "lengths"]
        with pytest.raises(ValueError, match="method 'lengths' is registered already"):
            METHODS.register(method)
    finally:
        METHODS.unregister("lengths")
    assert "lengths" not in METHODS
    assert list(all_methods()) == NAMES
    with pytest.raises(ValueError, match="got 'lengths'"):
        METHODS.unregister("lengths")


def test_scores_alone_are_an_explanation():
    """A method that only gives a scorer inherits its explanations."""
    METHODS.register(ScorerMethod("lengths", "the letters of each word", "0", lambda context: Lengths()))
    try:
        explainer = Explainer(bert(), tokenizer())
        explanation = explainer("the dog runs", "a cat", method="lengths")
        assert explanation.importance == [3, 3, 4, 1, 3]
        assert (explanation.method, explanation.passes, explanation.pairs) == ("lengths", 2, ())  # all words, none
        assert torch.equal(explainer.scorer("lengths")(words()), Lengths()(words()))
        assert "lengths" in explainer.methods()
        assert "words by importance:\n  runs  +4.000" in str(explanation)
    finally:
        METHODS.unregister("lengths")
