"""Explanations by masked passes: against enumeration, on tiny classifiers that transformers brings."""

import sys
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForSequenceClassification, DistilBertConfig

import spinformer
from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain import Explainer, explain
from spinformer.explain.explainer import NO_GAME
from spinformer.games import exact_values
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.identity import weights_digest
from spinformer.models.masked import ConfidenceGame, MaskedClassifier
from tests import tiny
from tests.explain.toys import bert, tokenizer

PAIR = ("two red cat not inside", "the man sleeps")
LONG = ("a man eats outside and the red dog runs", "two cat not inside")


def exact(model, texts, index, target=None):
    words = split_words(tokenizer(), texts, 64)
    classes = None if target is None else torch.tensor([target])
    return exact_values(ConfidenceGame(MaskedClassifier(model, tokenizer()), words, classes), index)[0]


def banzhaf(explanation):
    return [word.banzhaf for word in explanation.words]


@pytest.fixture(scope="module")
def long():
    model = bert()
    return model, explain(model, tokenizer(), *LONG, method="kernel-shap", passes=512)


@pytest.fixture(scope="module")
def grounded():
    """A classifier and a game of random weights, which is far from what it says."""
    model = bert()
    sizes = {"layers": (0, 1, 2), "width": 32, "classes": 3, "heads": 4, "dim": 16, "hidden": 32, "readout": 16}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        head = GameHead(GameHeadConfig(**sizes, model=weights_digest(model))).eval()
    return Explainer(model, tokenizer(), game=head)


def distances(values, truth, stderr):
    """In standard errors."""
    return ((torch.tensor(values) - truth).abs() / torch.tensor(stderr).clamp_min(1e-6)).flatten()


class TestExact:
    @pytest.mark.parametrize("texts", [PAIR, PAIR[:1], ("cat",)])
    def test_few_words_are_enumerated(self, texts):
        model = bert()
        explanation = explain(model, tokenizer(), *texts)
        one = Texts([texts[0]], [texts[1]] if len(texts) == 2 else None)
        count = len(explanation.words)
        assert explanation.method == "kernel-shap"
        assert explanation.passes == explanation.samples == 2**count
        for index, values in (("SV", explanation.importance), ("BV", banzhaf(explanation))):
            torch.testing.assert_close(torch.tensor(values), exact(model, one, index), atol=1e-6, rtol=0)
        torch.testing.assert_close(torch.tensor(explanation.interactions), exact(model, one, "SII"), atol=1e-6, rtol=0)
        assert explanation.pair_index == (None if count == 1 else "SII")
        assert set(explanation.importance_stderr) == {0.0}
        assert {word.shapley_stderr for word in explanation.words} == {0.0}
        assert {word.banzhaf_stderr for word in explanation.words} == {0.0}
        assert all(pair.stderr == 0 for pair in explanation.pairs)
        total = explanation.probabilities[explanation.label] - explanation.base_value
        assert abs(sum(explanation.importance) - total) <= 1e-6

    def test_another_class(self):
        model = bert()
        for target in range(3):
            explanation = explain(model, tokenizer(), *PAIR, target=target)
            assert explanation.target == f"LABEL_{target}"
            expected = exact(model, Texts([PAIR[0]], [PAIR[1]]), "SV", target)
            torch.testing.assert_close(torch.tensor(explanation.importance), expected, atol=1e-6, rtol=0)

    def test_the_ising_model_is_there(self):
        explanation = explain(bert(), tokenizer(), *PAIR)
        assert explanation.converged
        assert explanation.ess is None
        for word in explanation.words:
            assert 0 < word.attention < 1
            assert word.gate == 0.5
            assert word.field is not None


class TestEstimates:
    def test_within_their_standard_errors(self, long):
        """13 words, 512 passes of 8192: no value beyond 5 standard errors, and 90% of all within 2."""
        model, explanation = long
        one = Texts([LONG[0]], [LONG[1]])
        assert len(explanation.words) == 13
        assert explanation.passes <= 512
        assert explanation.samples == 512
        parts = [
            distances(explanation.importance, exact(model, one, "SV"), explanation.importance_stderr),
            distances(
                banzhaf(explanation), exact(model, one, "BV"), [word.banzhaf_stderr for word in explanation.words]
            ),
        ]
        truth = exact(model, one, "SII")
        pairs = [(pair.interaction, truth[pair.first, pair.second], pair.stderr) for pair in explanation.pairs]
        values, truths, errors = zip(*pairs, strict=True)
        parts.append(distances(list(values), torch.stack(truths), list(errors)))
        for part in parts:
            assert float(part.max()) <= 5
        assert float((torch.cat(parts) <= 2).float().mean()) >= 0.9
        assert all(word.shapley_stderr > 0 and word.banzhaf_stderr > 0 for word in explanation.words)

    def test_close_to_the_truth(self, long):
        """The error is below a third of the values' size for words."""
        model, explanation = long
        one = Texts([LONG[0]], [LONG[1]])
        for index, values in (("SV", explanation.importance), ("BV", banzhaf(explanation))):
            truth = exact(model, one, index)
            assert float((torch.tensor(values) - truth).norm()) <= float(truth.norm()) / 3

    def test_the_seed_and_nothing_else(self, long):
        model, explanation = long
        assert explain(model, tokenizer(), *LONG, method="kernel-shap", passes=512) == explanation
        unasked = explain(model, tokenizer(), *LONG, passes=512)
        assert replace(unasked, notes=()) == explanation
        assert unasked.notes == (NO_GAME,)  # that one pass would do
        assert explain(model, tokenizer(), *LONG, passes=512, seed=1).importance != explanation.importance
        many = explain(model, tokenizer(), [PAIR[0], LONG[0]], [PAIR[1], LONG[1]], passes=512)
        torch.testing.assert_close(torch.tensor(many[1].importance), torch.tensor(explanation.importance))
        assert many[0].method == "kernel-shap"

    def test_too_few_passes(self):
        with pytest.raises(ValueError, match=r"^passes must be an integer of at least 4; got 3$"):
            explain(bert(), tokenizer(), *LONG, passes=3)
        few = explain(bert(), tokenizer(), *LONG, passes=4)  # enough, however many words there are
        assert (few.passes, few.samples) == (4, 4)

    def test_until_no_word_is_off_by_more(self, long):
        """2.9 standard errors of any of 13 words: with 95% confidence all errors are below that."""
        model, explanation = long
        bound = 2 * max(explanation.importance_stderr)
        closer = explain(model, tokenizer(), *LONG, passes=512, until=bound)
        assert 2.88 * max(closer.importance_stderr) <= bound
        assert explanation.passes < closer.passes <= closer.samples < 2**13
        truth = exact(model, Texts([LONG[0]], [LONG[1]]), "SV")
        assert float((torch.tensor(closer.importance) - truth).abs().max()) <= bound


class TestRefinement:
    """A game's values, corrected by masked passes."""

    def test_enough_passes_for_every_coalition_are_exact(self, grounded):
        refined, one_pass = grounded(*PAIR, passes=256), grounded(*PAIR)
        masked = grounded(*PAIR, method="kernel-shap", passes=256)
        assert (one_pass.passes, refined.passes, refined.method) == (1, 256, "shapley")
        torch.testing.assert_close(torch.tensor(refined.importance), torch.tensor(masked.importance))
        torch.testing.assert_close(torch.tensor(refined.interactions), torch.tensor(masked.interactions))
        assert refined.pair_index == masked.pair_index == "SII"
        assert (torch.tensor(one_pass.importance) - torch.tensor(masked.importance)).abs().max() > 0.01

    @pytest.mark.parametrize(("method", "index"), [("shapley", "SV"), ("banzhaf", "BV")])
    def test_fewer_passes_are_within_their_standard_errors(self, grounded, method, index):
        explanation = grounded(*LONG, method=method, passes=400)
        assert explanation.passes <= 400
        truth = exact(grounded.model, Texts([LONG[0]], [LONG[1]]), index)
        assert max(distances(explanation.importance, truth, explanation.importance_stderr)) <= 5
        before = torch.tensor(grounded(*LONG, method=method).importance)
        assert (torch.tensor(explanation.importance) - truth).norm() < (before - truth).norm()

    def test_until(self, grounded):
        explanation = grounded(*LONG, passes=100, until=0.005)
        assert 2.88 * max(explanation.importance_stderr) <= 0.005
        assert 100 < explanation.passes < 2**13
        truth = exact(grounded.model, Texts([LONG[0]], [LONG[1]]), "SV")
        assert float((torch.tensor(explanation.importance) - truth).abs().max()) <= 0.005


@pytest.mark.parametrize("classes", [2, 5])
def test_any_classifier_with_any_number_of_classes(classes, tmp_path):
    config = DistilBertConfig(
        vocab_size=4 + len(tiny.WORDS), dim=32, n_layers=1, n_heads=2, hidden_dim=64, num_labels=classes
    )
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    words = tiny.tokenizer(types=False)
    explanation = explain(model, words, "the red dog eats")
    assert list(explanation.probabilities) == [f"LABEL_{number}" for number in range(classes)]
    direct = model(**words("the red dog eats", return_tensors="pt")).logits.softmax(-1)[0]
    torch.testing.assert_close(torch.tensor(list(explanation.probabilities.values())), direct)
    model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    saved = tmp_path / "explanation.json"
    command = ["explain", str(tmp_path), "the red dog eats", "--method", "kernel-shap", "--passes", "16"]
    assert main([*command, "--output", str(saved)]) == 0
    assert '"method": "kernel-shap"' in saved.read_text()


def test_without_shapiq(monkeypatch):
    """Masked passes need no other library; what hands results on to shapiq does, and says so in one line."""
    monkeypatch.setitem(sys.modules, "shapiq", None)
    explanation = explain(bert(), tokenizer(), *LONG)
    assert isinstance(explanation, spinformer.Explanation)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'spinformer\[compare\]'"):
        explanation.to_shapiq()
