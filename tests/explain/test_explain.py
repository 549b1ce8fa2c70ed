"""`explain` and its result: what it holds, its laws, its file, its colours, its errors."""

import json

import pytest
import torch

from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.explain import Explanation, coloured, explain
from spinformer.explain.grounded import Grounded
from spinformer.models.grounding import GameHead
from spinformer.training.ground import Grounding, ground
from tests.tiny import NLI, bert, rows, tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A classifier that transformers brings, with a game beside it."""
    from transformers import BertForSequenceClassification

    place = tmp_path_factory.mktemp("explained")
    torch.manual_seed(0)
    model = BertForSequenceClassification(bert(num_labels=3, id2label=dict(enumerate(NLI)))).eval()
    model.save_pretrained(place)
    tokenizer().save_pretrained(place)
    pairs = rows(64)
    texts = Texts([row["premise"] for row in pairs], [row["hypothesis"] for row in pairs])
    ground(model, tokenizer(), texts, place, Grounding(heads=4, dim=16, hidden=32, readout=16, batch_size=8, epochs=2))
    return place


@pytest.fixture(scope="module")
def model(folder):
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification.from_pretrained(folder).eval()


@pytest.fixture(scope="module")
def found(model):
    return explain(model, tokenizer(), "a man runs outside", "the man sleeps not", samples=64)


class TestExplanation:
    def test_words_and_sides(self, found):
        assert [word.text for word in found.words] == ["a", "man", "runs", "outside", "the", "man", "sleeps", "not"]
        assert [word.side for word in found.words] == [0] * 4 + [1] * 4

    def test_the_prediction_is_the_model_s_own(self, found, model):
        own = model(**tokenizer()("a man runs outside", "the man sleeps not", return_tensors="pt")).logits.softmax(-1)[
            0
        ]
        assert list(found.probabilities) == list(NLI)
        torch.testing.assert_close(torch.tensor(list(found.probabilities.values())), own)
        assert found.label == NLI[int(own.argmax())]

    def test_shapley_values_sum_to_what_the_words_add(self, found):
        """Permutations telescope, so this holds up to the estimate's own error: within 5 standard errors of the sum."""
        total = found.probabilities[found.label] - found.empty_value
        error = sum(value**2 for value in found.importance_stderr) ** 0.5
        assert abs(sum(found.importance) - total) <= 5 * error + 1e-6

    def test_pairs_are_all_and_symmetric(self, found):
        assert len(found.pairs) == 8 * 7 // 2
        matrix = torch.tensor(found.interactions)
        assert torch.equal(matrix, matrix.T)
        assert float(matrix.diagonal().abs().max()) == 0

    def test_what_comes_first(self, found):
        sizes = [abs(word.shapley) for word in found.top_words(8)]
        assert sizes == sorted(sizes, reverse=True)
        assert found.top_pairs(1)[0][2] in [pair.interaction for pair in found.pairs]
        assert found.passes == 1
        assert found.converged

    def test_saved_and_loaded_is_the_same(self, found, tmp_path):
        assert Explanation.load(found.save(tmp_path / "one.json")) == found

    def test_files_that_are_none(self, found, tmp_path):
        path = tmp_path / "one.json"
        for text in ("no", "[]", "{}", json.dumps({**found.to_dict(), "words": [{"text": "a"}]})):
            path.write_text(text)
            with pytest.raises(ValueError, match="is no saved explanation"):
                Explanation.load(path)

    def test_difference(self, found, model):
        other = explain(model, tokenizer(), "a man runs outside", "the man sleeps not", seed=5)
        assert all(change == one.shapley - two.shapley for one, two, change in found.difference(other))
        with pytest.raises(ValueError, match="same words"):
            found.difference(explain(model, tokenizer(), "a dog", "a cat"))

    def test_colours_show_text_as_text(self, model):
        shown = coloured(explain(model, tokenizer(), "a \x1b[31mman <script>", "the \u202edog"))
        assert "\x1b[31m" not in shown
        assert "script" in shown


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
        found = explain(model, tokenizer(), "the red dog eats")
        assert found.texts == ("the red dog eats",)
        assert {word.side for word in found.words} == {0}

    def test_no_game_and_bad_texts(self, model, tmp_path):
        from transformers import BertForSequenceClassification

        bare = BertForSequenceClassification(bert(num_labels=3))
        with pytest.raises(ValueError, match="spinformer ground"):
            explain(bare, tokenizer(), "a man", "a dog", method="grounded")
        with pytest.raises(ValueError, match="'auto', 'grounded', 'masked'"):
            explain(bare, tokenizer(), "a man", "a dog", method="guess")
        with pytest.raises(ValueError, match="hypothesis 0 must be a text"):
            explain(model, tokenizer(), "a man", " ")
        with pytest.raises(ValueError, match="at least 4"):
            explain(model, tokenizer(), "a man", "a dog", samples=1)

    def test_a_game_that_is_given(self, model, folder):
        grounded = Grounded.load(folder, model)
        assert explain(model, tokenizer(), "a man", "a dog", grounded=grounded) == explain(
            model, tokenizer(), "a man", "a dog"
        )

    def test_gibbs_weights_are_an_option(self, model):
        """They change the Ising model, and not the values."""
        plain = explain(model, tokenizer(), "a man runs", "a dog")
        gibbs = explain(model, tokenizer(), "a man runs", "a dog", weighting="gibbs")
        assert plain.importance == gibbs.importance
        assert plain.pairs == gibbs.pairs
        assert plain.attention != gibbs.attention
        assert plain.ess == plain.samples
        assert gibbs.ess > 0.9 * gibbs.samples

    def test_spins_are_decided_in_the_cold_and_not_in_the_heat(self, model):
        """The values do not change; gates of the attention leave 1/2 the more, the colder it is."""
        cold, usual, hot = (
            explain(model, tokenizer(), "a man runs", "a dog", temperature=heat) for heat in (0.08, 0.25, 3.0)
        )
        assert cold.importance == usual.importance == hot.importance
        spread = [max(abs(value - 0.5) for value in found.attention) for found in (cold, usual, hot)]
        assert spread[0] > 1.2 * spread[1] > 2.4 * spread[2] > 0

    def test_fields_and_attention_spread_as_their_standard_errors_say(self, model):
        """Over 200 seeds. Errors of antithetic draws are on the safe side: up to twice the spread, never two thirds."""
        many = [explain(model, tokenizer(), "a man runs", "a dog", seed=seed) for seed in range(200)]
        for what in ("field", "attention"):
            values = torch.tensor([[getattr(word, what) for word in found.words] for found in many])
            errors = torch.tensor([[getattr(word, f"{what}_stderr") for word in found.words] for found in many])
            ratio = errors.square().mean().sqrt() / values.var(0).mean().sqrt()
            assert 0.67 < float(ratio) < 2, (what, ratio)

    def test_a_model_in_training_is_asked_as_if_it_were_not(self, model):
        quiet = explain(model, tokenizer(), "a man runs", "a dog")
        model.train()
        try:
            assert explain(model, tokenizer(), "a man runs", "a dog") == quiet
            assert model.training
        finally:
            model.eval()

    def test_the_head_is_read_once(self, model, monkeypatch):
        explain(model, tokenizer(), "a man runs", "a dog")

        def again(*args):
            raise AssertionError("read again")

        monkeypatch.setattr(GameHead, "load", again)
        explain(model, tokenizer(), "a man runs", "a dog")

    @pytest.mark.parametrize("options", [{"num_labels": 1}, {"problem_type": "multi_label_classification"}])
    def test_models_that_choose_no_class(self, options):
        from transformers import BertForSequenceClassification

        with pytest.raises(ValueError, match="chooses one of at least 2 classes"):
            explain(BertForSequenceClassification(bert(**options)), tokenizer(), "a man runs", "a dog")

    def test_command(self, folder, tmp_path, capsys):
        saved = tmp_path / "found.json"
        assert main(["explain", str(folder), "a man runs", "the man sleeps", "--output", str(saved)]) == 0
        shown = capsys.readouterr().out
        assert "Shapley" in shown
        assert "antagonism" in shown or "synergy" in shown
        assert Explanation.load(saved).texts == ("a man runs", "the man sleeps")
        assert main(["explain", str(tmp_path / "none"), "a", "b"]) == 2
