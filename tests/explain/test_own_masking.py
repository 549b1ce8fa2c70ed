"""A caller's own function that hides words."""

import pytest
import torch

from spinformer import Explainer
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.models.masked import MaskedClassifier
from spinformer.training.game import GroundingOptions, train_game_head
from tests.explain.conftest import SMALL_HEAD
from tests.tiny import nli_classifier, rows, tokenizer

FIRST, SECOND = "the man eats outside", "the man sleeps"
UNKNOWN = 1
NO_FUNCTION = "masking 'own' stands for a function that hides words; hand in that function as masking"
NEITHER = "masking must be one of 'attention', 'token', 'delete', or a function; got 3"


def unknown(inputs, visible):
    """Hidden words become the unknown token."""
    hidden = ~visible & inputs["attention_mask"].bool()
    return {**inputs, "input_ids": inputs["input_ids"].masked_fill(hidden, UNKNOWN)}


def answers(masking):
    own = tokenizer()
    own.mask_token = "[UNK]"
    classifier = MaskedClassifier(nli_classifier(), own, masking)
    words = split_words(own, Texts([FIRST], [SECOND]), 64)
    coalitions = torch.rand(1, 9, 7, generator=torch.Generator().manual_seed(0)) < 0.5
    return classifier.probabilities(words, coalitions)


def test_the_function_decides_what_the_model_reads():
    assert torch.equal(answers(unknown), answers("token"))
    assert not torch.allclose(answers(unknown), answers("attention"), atol=1e-4)


def test_explained_by_masked_passes():
    found = Explainer(nli_classifier(), tokenizer(), masking=unknown)(FIRST, SECOND)
    assert found.method == "kernel-shap"
    assert found.base_value + sum(found.importance) == pytest.approx(found.full_value, abs=1e-4)


def test_grounded_with_it(tmp_path):
    model, pairs = nli_classifier(), [(row["premise"], row["hypothesis"]) for row in rows(48)]
    explainer = Explainer(model, tokenizer(), masking=unknown)
    explainer.ground(pairs, tmp_path, **SMALL_HEAD, epochs=1)
    assert explainer.grounded.head.config.masking == "own"
    assert explainer(FIRST, SECOND).method == "shapley"
    again = Explainer(model, tokenizer(), game=tmp_path, masking=unknown)
    assert again(FIRST, SECOND) == explainer(FIRST, SECOND)
    with pytest.raises(ValueError, match=NO_FUNCTION):
        Explainer(model, tokenizer(), game=tmp_path)


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda inputs, visible: None, TypeError, "masking must return the inputs of the model, tensors by name"),
        (lambda inputs, visible: {"input_ids": [1]}, TypeError, "masking must return the inputs of the model"),
        (
            lambda inputs, visible: {name: value[:1] for name, value in inputs.items()},
            ValueError,
            "masking must return 9 rows of input_ids",
        ),
    ],
)
def test_bad_results(made, error, message):
    with pytest.raises(error, match=message):
        answers(made)


def test_bad_functions(tmp_path):
    with pytest.raises(ValueError, match=NEITHER):
        Explainer(nli_classifier(), tokenizer(), masking=3)
    with pytest.raises(ValueError, match=NO_FUNCTION):
        Explainer(nli_classifier(), tokenizer(), masking="own")
    texts = Texts([FIRST], [SECOND])
    with pytest.raises(ValueError, match="masking 'own' goes with a function that hides words"):
        train_game_head(nli_classifier(), tokenizer(), texts, tmp_path, GroundingOptions(masking="own"))
    with pytest.raises(ValueError, match="masking 'own' goes with a function that hides words"):
        train_game_head(nli_classifier(), tokenizer(), texts, tmp_path, GroundingOptions(), hide=unknown)
