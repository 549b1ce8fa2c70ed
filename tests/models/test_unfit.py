"""Models and tokenizers that cannot be explained, or not as they are: one line that says why."""

import pytest
import torch
import transformers
from transformers import BertForSequenceClassification

from spinformer import Explainer
from spinformer.data.texts import Texts
from spinformer.models.outputs import output_names
from spinformer.models.predict import predict
from tests.tiny import bert, nli_classifier, tokenizer

TEXT = "the man sleeps"


@pytest.mark.parametrize(
    "name", ["BertModel", "BertForMaskedLM", "BertForTokenClassification", "BertForQuestionAnswering"]
)
def test_models_that_are_no_sequence_classifiers(name):
    explainer = Explainer(getattr(transformers, name)(bert()).eval(), tokenizer())
    for method in ("auto", "leave-one-out"):
        with pytest.raises(TypeError, match=rf"^expected a sequence classifier; got {name}$"):
            explainer(TEXT, method=method)


def test_models_of_torch_alone():
    for made in (Explainer, lambda model, own: predict(model, own, Texts([TEXT]))):
        with pytest.raises(TypeError, match=r"^expected a sequence classifier; got Linear$"):
            made(torch.nn.Linear(2, 2), tokenizer())


def test_a_tokenizer_of_another_model():
    small = BertForSequenceClassification(bert(vocab_size=10)).eval()
    with pytest.raises(ValueError, match=r"^the tokenizer must have at most 10 tokens, which the model knows; got 18$"):
        Explainer(small, tokenizer())


def test_names_are_told_apart():
    model = nli_classifier()
    for given, expected in (
        ("aab", ["a (0)", "a (1)", "b"]),
        (("a", "a", "a (0)"), ["a (0)", "a (1)", "a (0) (2)"]),
        ("abc", ["a", "b", "c"]),
    ):
        model.config.id2label = dict(enumerate(given))
        assert output_names(model) == expected
        explanation = Explainer(model, tokenizer())(TEXT, target=expected[1])
        assert list(explanation.probabilities) == expected
        assert sum(explanation.probabilities.values()) == pytest.approx(1, abs=1e-5)
        assert explanation.target == expected[1]


@pytest.mark.parametrize("names", ["ab", "abcd"])
def test_names_of_fewer_or_more_outputs(names):
    model = nli_classifier()
    model.config.id2label = dict(enumerate(names))
    message = rf"^config.id2label must name the model's 3 outputs; it names {len(names)}$"
    with pytest.raises(ValueError, match=message):
        Explainer(model, tokenizer())(TEXT)


def test_a_function_cannot_be_saved(tmp_path):
    explainer = Explainer.from_function(lambda texts: [len(text) for text in texts], ["length"])
    with pytest.raises(ValueError, match=r"^expected a Hugging Face model, which can be saved; a function cannot$"):
        explainer.save(tmp_path / "none")
    assert not (tmp_path / "none").exists()
