"""`explain` and its result: the numbers that it holds and their laws, its file, its text, its errors."""

import json
import math

import pytest
import torch
from transformers import BertForSequenceClassification

from spinformer.cli import main
from spinformer.explain import Explanation, Pair, Word, explain
from spinformer.explain.grounded import ANNEALED, find_game_head
from spinformer.explain.render.text import colored_text
from spinformer.models.game_head import GameHead
from tests.tiny import NLI, bert, rows, tokenizer

TEXT = ("a man runs outside", "the man sleeps not")


@pytest.fixture(scope="module")
def explanation(model):
    return explain(model, tokenizer(), *TEXT, samples=64)


class TestExplanation:
    def test_words_and_sides(self, explanation):
        assert [word.text for word in explanation.words] == " ".join(TEXT).split()
        assert [word.side for word in explanation.words] == [0] * 4 + [1] * 4

    def test_the_prediction_is_that_of_the_model(self, explanation, model):
        direct = model(**tokenizer()(*TEXT, return_tensors="pt")).logits.softmax(-1)[0]
        assert list(explanation.probabilities) == list(NLI)
        torch.testing.assert_close(torch.tensor(list(explanation.probabilities.values())), direct)
        assert explanation.label == explanation.target == NLI[int(direct.argmax())]

    def test_shapley_values_sum_to_what_the_words_add(self, explanation, model):
        """However few coalitions they are estimated from: the classifier's own answers for all words and for none."""
        words = tokenizer()(*TEXT, return_tensors="pt")
        special = torch.isin(words["input_ids"], torch.tensor(tokenizer().all_special_ids))
        nothing = model(**{**words, "attention_mask": words["attention_mask"] * special}).logits.detach().softmax(-1)[0]
        total = explanation.probabilities[explanation.label] - float(nothing[NLI.index(explanation.label)])
        assert max(explanation.importance_stderr) > 0
        assert abs(sum(explanation.importance) - total) <= 1e-5

    def test_importance_is_the_shapley_value(self, explanation):
        assert explanation.method == "shapley"
        assert explanation.importance == [word.shapley for word in explanation.words]
        assert explanation.importance_stderr == [word.shapley_stderr for word in explanation.words]

    def test_pairs_are_all_and_symmetric(self, explanation):
        assert len(explanation.pairs) == 8 * 7 // 2
        for matrix in (torch.tensor(explanation.interactions), torch.tensor(explanation.interactions_stderr)):
            assert torch.equal(matrix, matrix.T)
            assert float(matrix.diagonal().abs().max()) == 0
            assert float(matrix.abs().max()) > 0

    def test_order_of_words_and_pairs(self, explanation):
        sizes = [abs(word.importance) for word in explanation.top_words(8)]
        assert sizes == sorted(sizes, reverse=True)
        assert explanation.top_pairs(1)[0][2] in [pair.interaction for pair in explanation.pairs]
        assert explanation.passes == 1
        assert explanation.converged

    def test_numbers_that_a_method_does_not_give_are_nan(self, model):
        scores = explain(model, tokenizer(), *TEXT, method="leave-one-out")
        assert all(map(math.isnan, scores.attention))
        assert all(map(math.isnan, scores.importance_stderr))
        assert scores.pairs == ()
        matrix = scores.interactions
        assert all(math.isnan(value) == (i != j) for i, row in enumerate(matrix) for j, value in enumerate(row))
        words = tokenizer()(*TEXT, return_tensors="pt")
        hidden = words["attention_mask"] * torch.isin(words["input_ids"], torch.tensor(tokenizer().all_special_ids))
        nothing = model(**{**words, "attention_mask": hidden}).logits.detach().softmax(-1)[0]
        assert scores.base_value == pytest.approx(float(nothing[NLI.index(scores.target)]), abs=1e-6)

    def test_difference(self, explanation, model):
        other = explain(model, tokenizer(), *TEXT, seed=5)
        assert all(change == one.shapley - two.shapley for one, two, change in explanation.difference(other))
        with pytest.raises(ValueError, match="same words"):
            explanation.difference(explain(model, tokenizer(), "a dog", "a cat"))

    def test_colours_show_text_as_text(self, model):
        shown = colored_text(explain(model, tokenizer(), "a \x1b[31mman <script>", "the \u202edog"))
        assert "\x1b[31m" not in shown
        assert "script" in shown

    def test_print_and_notebook(self, explanation):
        lines = str(explanation).splitlines()
        assert lines[0] == f"{explanation.label} ({explanation.probabilities[explanation.label]:.1%})"
        assert f"  {explanation.top_words(1)[0].text}" in str(explanation)
        assert lines[-1] == "method shapley, 1 pass of the classifier"
        assert 8 <= len(lines) <= 16
        shown = explanation._repr_html_()
        assert explanation.label in shown
        assert all(word in shown for word in ("runs", "sleeps"))


class TestFile:
    def test_saved_and_loaded_is_the_same(self, explanation, model, tmp_path):
        assert Explanation.load(explanation.save(tmp_path / "one.json")) == explanation
        scores = explain(model, tokenizer(), *TEXT, method="random", target="neutral")
        assert Explanation.load(scores.save(tmp_path / "two.json")) == scores

    def test_other_files_are_refused(self, explanation, tmp_path):
        path = tmp_path / "one.json"
        stored = explanation.to_dict()
        contents = ("no", "[]", "{}", json.dumps({**stored, "words": [{"text": "a"}]}), json.dumps({**stored, "x": 1}))
        for text in (*contents, json.dumps({**stored, "format": 6})):
            path.write_text(text)
            with pytest.raises(ValueError, match="is no saved explanation"):
                Explanation.load(path)

    @pytest.mark.parametrize(("stored", "method"), [("grounded", "shapley"), ("masked", "kernel-shap")])
    def test_files_of_the_first_format(self, tmp_path, stored, method):
        """As earlier versions wrote them: Shapley values alone as scores, `empty_value`, two methods."""
        word = {
            "text": "dog",
            "side": 0,
            "shapley": 0.25,
            "shapley_stderr": 0.5,
            "banzhaf": -0.125,
            "banzhaf_stderr": 1,
        }
        ising = {"gate": 0.5, "field": 0.1, "attention": 0.7, "field_stderr": None, "attention_stderr": None}
        content = {
            "format": 1,
            "texts": ["dog cat"],
            "label": "yes",
            "probabilities": {"yes": 0.75, "no": 0.25},
            "words": [{**word, **ising}, {**word, **ising, "text": "cat"}],
            "pairs": [{"first": 0, "second": 1, "interaction": 0.5, "stderr": 0.25}],
            "empty_value": 0.375,
            "method": stored,
            "passes": 1,
            "samples": 16,
            "ess": 16.0,
            "converged": True,
        }
        path = tmp_path / "old.json"
        path.write_text(json.dumps(content))
        loaded = Explanation.load(path)
        numbers = {"importance": 0.25, "importance_stderr": 0.5, "shapley": 0.25, "shapley_stderr": 0.5}
        expected = Word("dog", 0, **numbers, banzhaf=-0.125, banzhaf_stderr=1, gate=0.5, field=0.1, attention=0.7)
        assert loaded.words[0] == expected
        assert loaded.pairs == (Pair(0, 1, 0.5, 0.25),)
        assert (loaded.label, loaded.target, loaded.base_value, loaded.method) == ("yes", "yes", 0.375, method)
        assert Explanation.load(loaded.save(tmp_path / "new.json")) == loaded


class TestExplain:
    def test_many_at_once_are_as_one_by_one(self, model):
        pairs = rows(4, seed=3)
        many = explain(model, tokenizer(), [row["premise"] for row in pairs], [row["hypothesis"] for row in pairs])
        for row, explained in zip(pairs, many, strict=True):
            alone = explain(model, tokenizer(), row["premise"], row["hypothesis"])
            torch.testing.assert_close(
                torch.tensor(alone.importance), torch.tensor(explained.importance), atol=1e-4, rtol=1e-3
            )

    def test_one_text(self, model):
        explanation = explain(model, tokenizer(), "the red dog eats")
        assert explanation.texts == ("the red dog eats",)
        assert {word.side for word in explanation.words} == {0}

    def test_no_game_and_bad_texts(self, model):
        bare = BertForSequenceClassification(bert(num_labels=3))
        with pytest.raises(ValueError, match="spinformer ground"):
            explain(bare, tokenizer(), "a man", "a dog", method="shapley")
        with pytest.raises(ValueError, match=r"method must be one of 'shapley', 'banzhaf', .*; got 'guess'"):
            explain(bare, tokenizer(), "a man", "a dog", method="guess")
        with pytest.raises(ValueError, match="text_pair 0 must be a text that is not empty; got ' '"):
            explain(model, tokenizer(), "a man", " ")
        with pytest.raises(ValueError, match="at least 4"):
            explain(model, tokenizer(), "a man", "a dog", samples=1)

    def test_a_game_that_is_given(self, model, grounded_folder):
        expected = explain(model, tokenizer(), "a man", "a dog")
        for game in (find_game_head(model), grounded_folder, str(grounded_folder)):
            assert explain(model, tokenizer(), "a man", "a dog", game=game) == expected

    def test_gibbs_weights_are_an_option(self, model):
        """They change the Ising model, and not the values."""
        plain = explain(model, tokenizer(), "a man runs", "a dog")
        gibbs = explain(model, tokenizer(), "a man runs", "a dog", weighting="gibbs")
        assert plain.importance == gibbs.importance
        assert plain.pairs == gibbs.pairs
        assert plain.attention != gibbs.attention
        assert plain.ess == plain.samples == 2**5  # all coalitions
        assert 0.9 * ANNEALED < gibbs.ess <= ANNEALED

    def test_spins_are_decided_in_the_cold_and_not_in_the_heat(self, model):
        """The values do not change; attention leaves 1/2 the more, the colder it is."""
        cold, usual, hot = (
            explain(model, tokenizer(), "a man runs", "a dog", temperature=temperature)
            for temperature in (0.08, 0.25, 3.0)
        )
        assert cold.importance == usual.importance == hot.importance
        spread = [max(abs(value - 0.5) for value in each.attention) for each in (cold, usual, hot)]
        assert spread[0] > 1.2 * spread[1] > 2.4 * spread[2] > 0

    def test_fields_and_attention_spread_as_their_standard_errors_say(self, model):
        """Over 100 seeds, 32 of 4096 coalitions: between two thirds of the spread and twice as much."""
        texts = ("a man runs outside the red dog", "the man sleeps not inside")
        many = [explain(model, tokenizer(), *texts, samples=32, seed=seed) for seed in range(100)]
        for name in ("field", "attention"):
            values = torch.tensor([[getattr(word, name) for word in each.words] for each in many])
            errors = torch.tensor([[getattr(word, f"{name}_stderr") for word in each.words] for each in many])
            ratio = errors.square().mean().sqrt() / values.var(0).mean().sqrt()
            assert 0.67 < float(ratio) < 2, (name, ratio)

    @pytest.mark.parametrize("method", ["shapley", "kernel-shap", "integrated-gradients"])
    def test_a_model_in_training_is_explained_as_if_it_were_not(self, model, method):
        quiet = explain(model, tokenizer(), "a man runs", "a dog", method=method)
        model.train()
        try:
            assert explain(model, tokenizer(), "a man runs", "a dog", method=method) == quiet
            assert model.training
            assert all(module.training for module in model.modules())
        finally:
            model.eval()

    def test_the_game_head_is_read_once(self, model, monkeypatch):
        explain(model, tokenizer(), "a man runs", "a dog")

        def again(*args):
            raise AssertionError("read again")

        monkeypatch.setattr(GameHead, "load", again)
        explain(model, tokenizer(), "a man runs", "a dog")

    def test_command(self, grounded_folder, tmp_path, capsys):
        saved = tmp_path / "explanation.json"
        assert main(["explain", str(grounded_folder), "a man runs", "the man sleeps", "--output", str(saved)]) == 0
        shown = capsys.readouterr().out
        assert "Shapley" in shown
        assert "antagonism" in shown or "synergy" in shown
        assert Explanation.load(saved).texts == ("a man runs", "the man sleeps")
        assert main(["explain", str(tmp_path / "none"), "a", "b"]) == 2
