"""Explanations by masking: against enumeration, on tiny classifiers that transformers brings."""

import sys

import pytest
import torch
from transformers import AutoModelForSequenceClassification, DistilBertConfig

from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.explain import ConfidenceGame, MaskedClassifier, explain, split
from spinformer.explain.masking import fair_coins, posterior
from spinformer.games import TableGame, exact_values
from tests import tiny
from tests.explain.toys import bert, tokenizer

PAIR = ("two red cat not inside", "the man sleeps")
LONG = ("a man eats outside and the red dog runs", "two cat not inside")


def exact(model, texts, index):
    words = split(tokenizer(), texts, 64)
    return exact_values(ConfidenceGame(MaskedClassifier(model, tokenizer()), words), index)[0]


@pytest.fixture(scope="module")
def long():
    model = bert()
    return model, explain(model, tokenizer(), *LONG, method="masked", budget=512)


def off(found, truth, stderr):
    return ((torch.tensor(found) - truth).abs() / torch.tensor(stderr).clamp_min(1e-6)).flatten()


class TestExact:
    @pytest.mark.parametrize("texts", [PAIR, PAIR[:1], ("cat",)])
    def test_few_words_are_enumerated(self, texts):
        model = bert()
        found = explain(model, tokenizer(), *texts)
        one = Texts([texts[0]], [texts[1]] if len(texts) == 2 else None)
        count = len(found.words)
        assert found.method == "masked"
        assert found.passes == found.samples == 2**count
        for index, values in (("SV", found.importance), ("BV", [word.banzhaf for word in found.words])):
            torch.testing.assert_close(torch.tensor(values), exact(model, one, index), atol=1e-6, rtol=0)
        torch.testing.assert_close(torch.tensor(found.interactions), exact(model, one, "BII"), atol=1e-6, rtol=0)
        assert {word.shapley_stderr for word in found.words} | {word.banzhaf_stderr for word in found.words} == {0.0}
        assert all(pair.stderr == 0 for pair in found.pairs)
        total = found.probabilities[found.label] - found.empty_value
        assert abs(sum(found.importance) - total) <= 1e-6

    def test_the_ising_model_is_there(self):
        found = explain(bert(), tokenizer(), *PAIR)
        assert found.converged
        assert found.ess is None
        assert all(0 < word.attention < 1 and word.gate == 0.5 and word.field is not None for word in found.words)


class TestEstimates:
    def test_within_their_standard_errors(self, long):
        """13 words, 512 passes of 8192: no value beyond 5 standard errors, and 90% of all within 2."""
        model, found = long
        one = Texts([LONG[0]], [LONG[1]])
        assert len(found.words) == 13
        assert found.passes <= 512
        assert found.samples == 512
        parts = [
            off(found.importance, exact(model, one, "SV"), found.importance_stderr),
            off(
                [word.banzhaf for word in found.words],
                exact(model, one, "BV"),
                [word.banzhaf_stderr for word in found.words],
            ),
        ]
        truth = exact(model, one, "BII")
        pairs = [(pair.interaction, truth[pair.first, pair.second], pair.stderr) for pair in found.pairs]
        values, truths, errors = zip(*pairs, strict=True)
        parts.append(off(list(values), torch.stack(truths), list(errors)))
        for part in parts:
            assert float(part.max()) <= 5
        assert float((torch.cat(parts) <= 2).float().mean()) >= 0.9
        assert all(word.shapley_stderr > 0 and word.banzhaf_stderr > 0 for word in found.words)

    def test_close_to_the_truth(self, long):
        """The error is below a third of the values' size for words."""
        model, found = long
        one = Texts([LONG[0]], [LONG[1]])
        for index, values in (("SV", found.importance), ("BV", [word.banzhaf for word in found.words])):
            truth = exact(model, one, index)
            assert float((torch.tensor(values) - truth).norm()) <= float(truth.norm()) / 3

    def test_the_seed_and_nothing_else(self, long):
        model, found = long
        assert explain(model, tokenizer(), *LONG, budget=512) == found
        assert explain(model, tokenizer(), *LONG, budget=512, seed=1).importance != found.importance
        many = explain(model, tokenizer(), [PAIR[0], LONG[0]], [PAIR[1], LONG[1]], budget=512)
        torch.testing.assert_close(torch.tensor(many[1].importance), torch.tensor(found.importance))
        assert many[0].method == "masked"

    def test_too_small_a_budget(self):
        with pytest.raises(ValueError, match="13 words needs a budget of at least 60 masked passes; got 59"):
            explain(bert(), tokenizer(), *LONG, budget=59)


@pytest.mark.parametrize("classes", [2, 5])
def test_any_classifier_with_any_number_of_classes(classes, tmp_path):
    config = DistilBertConfig(
        vocab_size=4 + len(tiny.WORDS), dim=32, n_layers=1, n_heads=2, hidden_dim=64, num_labels=classes
    )
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    words = tiny.tokenizer(types=False)
    found = explain(model, words, "the red dog eats")
    assert list(found.probabilities) == [f"LABEL_{place}" for place in range(classes)]
    own = model(**words("the red dog eats", return_tensors="pt")).logits.softmax(-1)[0]
    torch.testing.assert_close(torch.tensor(list(found.probabilities.values())), own)
    model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    saved = tmp_path / "found.json"
    command = ["explain", str(tmp_path), "the red dog eats", "--method", "masked", "--budget", "16"]
    assert main([*command, "--output", str(saved)]) == 0
    assert '"method": "masked"' in saved.read_text()


def test_without_shapiq_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "shapiq", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'spinformer\[compare\]'"):
        explain(bert(), tokenizer(), *LONG)


class TestFairCoins:
    def test_a_game_of_second_order_is_found(self):
        """Without third and fourth order there is no noise: 200 coalitions give 8 values and 28 pairs."""
        draw = torch.Generator().manual_seed(0)
        weight, pairs = torch.randn(8, generator=draw).double(), torch.randn(8, 8, generator=draw).double().triu(1)
        every = ((torch.arange(256)[:, None] >> torch.arange(8)) & 1).double()
        game = TableGame(every @ weight + torch.einsum("ki,ij,kj->k", every, pairs, every))
        coins = torch.rand(200, 8, generator=draw) < 0.5
        (values, _), (found, stderr) = fair_coins(coins, game(coins), game(~coins))
        torch.testing.assert_close(values, exact_values(game, "BV"), atol=1e-3, rtol=0)
        torch.testing.assert_close(found, exact_values(game, "BII"), atol=1e-2, rtol=0)
        assert float(stderr.max()) < 2e-2

    def test_noise_is_not_taken_for_weights(self):
        draw = torch.Generator().manual_seed(0)
        design, noise = torch.randn(40, 100, generator=draw).double(), torch.randn(40, generator=draw).double()
        mean, stderr = posterior(design, noise)
        assert bool((mean.abs() <= 4 * stderr + 1e-6).all())
        assert float(mean.norm()) < 0.3
        assert posterior(design, torch.zeros(40).double())[0].abs().max() == 0
