"""Models of several labels, of scores, and one class against another: values against the models' own answers."""

import random

import pytest
import torch
from transformers import BertForSequenceClassification

from spinformer.data.words import split_words
from spinformer.explain import Explainer, Explanation
from spinformer.explain.grounded import GroundedClassifier
from spinformer.explain.inputs import as_texts
from spinformer.games import exact_values
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from spinformer.models.outputs import answers_of, offsets_of, outputs_of, value_of
from spinformer.models.predicted_games import PredictedGames
from tests.tiny import WORDS, bert, tokenizer

KINDS = {"labels": ("multi_label_classification", 4), "scores": ("regression", 1), "classes": (None, 3)}
TEXT = "the man sleeps outside"


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


def classifier(kind, seed=0):
    """With an output layer so large that hiding a word changes the answer."""
    problem, count = KINDS[kind]
    torch.manual_seed(seed)
    model = BertForSequenceClassification(bert(num_labels=count, problem_type=problem)).eval()
    with torch.no_grad():
        model.classifier.weight.mul_(10.0)
    return model


def test_what_outputs_are(kind):
    assert outputs_of(classifier(kind)) == kind


def test_one_output_is_a_score():
    assert outputs_of(BertForSequenceClassification(bert(num_labels=1))) == "scores"


def test_answers_and_offsets():
    logits = torch.randn(5, 3)
    torch.testing.assert_close(answers_of(logits, "classes").sum(-1), torch.ones(5))
    torch.testing.assert_close(answers_of(logits, "labels"), 1 / (1 + (-logits).exp()))
    assert torch.equal(answers_of(logits, "scores"), logits)
    for outputs in KINDS:
        torch.testing.assert_close(answers_of(offsets_of(logits, outputs), outputs), answers_of(logits, outputs))
    both = torch.tensor([[0, 2]] * 5)
    torch.testing.assert_close(value_of(logits, both), logits[:, 0] - logits[:, 2])


def test_masked_answers_are_the_models_own(kind):
    model, tok = classifier(kind), tokenizer()
    words = split_words(tok, as_texts(TEXT, None), 32)
    found = MaskedClassifier(model, tok).full_probabilities(words)
    with torch.no_grad():
        logits = model(**words.inputs).logits
    torch.testing.assert_close(found, answers_of(logits, kind))


@pytest.mark.parametrize("method", ["kernel-shap", "leave-one-out", "integrated-gradients", "gradient-times-input"])
def test_every_method_takes_them(kind, method):
    explanation = Explainer(classifier(kind), tokenizer())(TEXT, method=method)
    assert explanation.outputs == kind
    assert explanation.target == explanation.label
    assert any(abs(value) > 1e-6 for value in explanation.importance)
    if method == "kernel-shap":  # 2^4 passes: exact
        assert explanation.base_value + sum(explanation.importance) == pytest.approx(explanation.full_value, abs=1e-4)


def test_values_are_exact_for_a_chosen_output(kind):
    model, tok = classifier(kind), tokenizer()
    last = KINDS[kind][1] - 1
    explanation = Explainer(model, tok)(TEXT, target=last)
    game = ConfidenceGame(
        MaskedClassifier(model, tok), split_words(tok, as_texts(TEXT, None), 32), torch.tensor([last])
    )
    assert explanation.importance == pytest.approx(exact_values(game, "SV")[0].tolist(), abs=1e-4)


def test_the_unit_of_scores_changes_nothing_but_the_numbers():
    torch.manual_seed(0)
    weights = torch.randn(14, 1) / 3

    def readout(features, members):
        return torch.tanh(members @ features)

    mask = torch.ones(1, 14, dtype=torch.bool)
    found = []
    for unit in (1.0, 100.0):
        games = PredictedGames(readout, weights, torch.zeros(1, 1), mask, "scores", unit)
        found.append(GroundedClassifier(None, None).all_values(games, target=torch.tensor([0])))
    one, hundred = found
    assert torch.equal(one.shapley.ess, hundred.shapley.ess)
    torch.testing.assert_close(100 * one.shapley.values, hundred.shapley.values, rtol=0.02, atol=0.02)


class TestAgainst:
    def test_values_are_the_difference(self):
        """Indices are linear: why A and not B is the difference of both explanations."""
        explain = Explainer(classifier("classes"), tokenizer())
        both, one, other = explain(TEXT, target=0, against=2), explain(TEXT, target=0), explain(TEXT, target=2)
        expected = [a - b for a, b in zip(one.importance, other.importance, strict=True)]
        assert both.importance == pytest.approx(expected, abs=1e-5)
        assert (both.target, both.against) == ("LABEL_0", "LABEL_2")
        assert both.base_value + sum(both.importance) == pytest.approx(both.full_value, abs=1e-4)
        assert "against LABEL_2" in str(both)

    def test_the_predicted_class_against_another(self):
        explain = Explainer(classifier("classes"), tokenizer())
        predicted = explain(TEXT).label
        others = [name for name in ("LABEL_0", "LABEL_1", "LABEL_2") if name != predicted]
        assert explain(TEXT, against=others[0]).target == predicted
        with pytest.raises(ValueError, match="name the target"):
            explain(TEXT, against=predicted)

    def test_bad_classes(self):
        explain = Explainer(classifier("classes"), tokenizer())
        with pytest.raises(ValueError, match="two classes; got 'LABEL_1' twice"):
            explain(TEXT, target=1, against="LABEL_1")
        with pytest.raises(ValueError, match="against must be one of"):
            explain(TEXT, target=1, against="nothing")


class TestLabels:
    def test_an_explanation_for_each_label_that_is_on(self):
        explain = Explainer(classifier("labels"), tokenizer())
        shares = explain(TEXT).probabilities
        found = explain.by_label(TEXT, threshold=0.3)
        on = sorted((name for name, share in shares.items() if share >= 0.3), key=lambda name: -shares[name])
        assert list(found) == on
        assert on
        for name, explanation in found.items():
            assert explanation.target == name
            assert explanation.base_value + sum(explanation.importance) == pytest.approx(shares[name], abs=1e-4)
        assert explain.by_label(TEXT, threshold=1) == {}

    @pytest.mark.parametrize(
        ("texts", "players", "words"),
        [
            ((TEXT,), [(0, 7)], ["the man"]),
            ((TEXT, "a red dog"), ([(0, 7)], [(2, 5), (6, 9)]), ["the man", "red", "dog"]),
            ((TEXT,), "sentences", [TEXT]),
        ],
    )
    def test_of_players(self, texts, players, words):
        explain = Explainer(classifier("labels"), tokenizer())
        found = explain.by_label(*texts, threshold=0, players=players)
        assert len(found) == 4
        assert all([word.text for word in one.words] == words for one in found.values())

    @pytest.mark.parametrize(
        ("text", "threshold", "error", "message"),
        [
            (TEXT, "x", TypeError, "threshold must be a number; got str"),
            (TEXT, 2, ValueError, "threshold must be a probability, from 0 to 1; got 2"),
            (TEXT, float("nan"), ValueError, "threshold must be a probability, from 0 to 1; got nan"),
            ([TEXT], 0.5, TypeError, "text must be one text, a string; got list"),
        ],
    )
    def test_bad_calls(self, text, threshold, error, message):
        with pytest.raises(error, match=message):
            Explainer(classifier("labels"), tokenizer()).by_label(text, threshold=threshold)

    def test_only_of_labels(self):
        with pytest.raises(ValueError, match="several labels at once; got one of classes"):
            Explainer(classifier("classes"), tokenizer()).by_label(TEXT)


@pytest.mark.slow
def test_a_game_is_learnt_and_read(kind, tmp_path):
    """It explains 70% of v(C) on held-out texts, and v(N) is the model's answer exactly."""
    draw = random.Random(3)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(3, 7))) for _ in range(160)]
    explain = Explainer(classifier(kind), tokenizer())
    explain.ground(texts, tmp_path, epochs=4, repeats=6, batch_size=20, dim=64, hidden=64, readout=64, seed=1)
    assert explain.grounded.head.config.outputs == kind
    assert explain.grounded.head.misfit.fit > 0.7
    found = explain(TEXT)
    real = Explainer(explain.model, explain.tokenizer, game=None)(TEXT, method="kernel-shap")
    assert found.probabilities == pytest.approx(real.probabilities, abs=1e-5)
    assert found.base_value + sum(found.importance) == pytest.approx(
        found.full_value, abs=2e-3 * max(1, abs(found.full_value))
    )
    again = Explainer(explain.model, explain.tokenizer, game=tmp_path)(TEXT)
    assert again.importance == pytest.approx(found.importance, abs=1e-6)


def test_saved_and_drawn(kind, tmp_path):
    explain = Explainer(classifier(kind), tokenizer())
    explanation = explain(TEXT)
    assert Explanation.load(explanation.save(tmp_path / "one.json")) == explanation
    page = explanation.to_html()
    assert {"classes": "Classes", "labels": "Labels", "scores": "Scores"}[kind] in page
    assert ("%" not in str(explanation).splitlines()[0]) == (kind == "scores")
    explanation.plot("words", tmp_path / "words.png")
