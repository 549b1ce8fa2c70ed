"""The small classifier inside the package: what it promises; and the names of the classifiers that come with it."""

import json
import math
import socket

import pytest

pytest.importorskip("transformers")

from research.experiments.small_card import write_card
from research.paths import RESULTS
from research.steps import CHECKPOINT
from spinformer import Explainer, load_classifier
from spinformer._base import records
from spinformer._base.files import sha256
from spinformer.data.sources import load_texts
from spinformer.evaluate.answers.evaluation import evaluate
from spinformer.models import shipped
from spinformer.models.hub import may_be_model
from spinformer.models.loading import load_config, load_tokenizer

PAIR = ("A man sleeps.", "Nobody is awake.")
LARGE = CHECKPOINT.rpartition("/")[2]


@pytest.fixture(scope="module")
def explainer():
    return Explainer.from_pretrained("small", device="cpu")


@pytest.fixture(scope="module")
def result():
    return records.read("nli-small", RESULTS)


class TestSmall:
    def test_loads_from_any_folder_without_network(self, tmp_path, monkeypatch):
        def refuse(*address):
            raise AssertionError(f"the network was asked for: {address}")

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        model, tokenizer = load_classifier("small", device="cpu")
        assert list(model.config.id2label.values()) == ["entailment", "neutral", "contradiction"]
        assert len(tokenizer) == model.config.encoder.vocab_size == len(load_tokenizer("small"))
        assert load_config("small").head == "neurogame"

    def test_size(self, result):
        size = sum(path.stat().st_size for path in shipped.EMBEDDED.rglob("*") if path.is_file())
        assert size <= 12_000_000
        assert result["outcome"]["variants"][result["outcome"]["chosen"]]["bytes"] <= size

    def test_explains_a_pair(self, explainer):
        explanation = explainer(*PAIR)
        assert explanation.label == "contradiction"
        assert explanation.probabilities["contradiction"] > 0.5
        assert (explanation.method, explanation.passes, explanation.notes) == ("shapley", 1, ())
        total = explanation.base_value + math.fsum(explanation.importance)
        assert total == pytest.approx(explanation.full_value, abs=1e-4)
        assert {word.text for word in explanation.top_words(3)} & {"Nobody", "awake"}
        assert all(stderr > 0 for stderr in explanation.importance_stderr)

    def test_accuracy(self, explainer):
        """84% on all of SNLI test is promised; these 200 pairs may be 2.5 standard errors below it."""
        texts = load_texts("sample:test").select(range(200))
        scores = evaluate(explainer.model, explainer.tokenizer, texts, progress=False).scores
        assert scores.accuracy > 0.84 - 2.5 * math.sqrt(0.84 * 0.16 / len(texts))

    def test_every_english_word_can_be_read(self, explainer):
        words = "Jabberwocky's vorpal blade went snicker-snack: 1,871 (naïve) café? #@~ ^_^ zzyzx"
        assert explainer.tokenizer.unk_token not in explainer.tokenizer.tokenize(words)

    def test_the_result_is_of_these_files(self, result):
        outcome = result["outcome"]
        chosen = outcome["variants"][outcome["chosen"]]
        for name, digest in outcome["files"].items():
            assert sha256(shipped.EMBEDDED / name) == digest, name
        assert set(outcome["files"]) >= {"model.safetensors", "game/game.safetensors"}
        assert chosen["scores"]["snli_test"]["accuracy"] >= 0.84
        assert chosen["scores"]["snli_test"]["count"] == 9_824
        misfit = json.loads((shipped.EMBEDDED / "game" / "misfit.json").read_text())
        assert misfit["fit"] == pytest.approx(chosen["fit"])
        assert misfit["fit"] > 0.8

    def test_the_card_says_what_the_result_says(self, result, tmp_path):
        chosen = result["outcome"]["chosen"]
        record = {"outcome": result["outcome"]["variants"][chosen], "config": result["config"][chosen]}
        card = write_card(tmp_path, record)
        assert (shipped.EMBEDDED / "README.md").read_text() == card.read_text()


class TestNames:
    def test_the_classifiers_of_a_clone(self):
        assert list(shipped.shipped_models()) == ["small", LARGE]
        assert shipped.named_model("small") == str(shipped.EMBEDDED)
        assert shipped.named_model(LARGE).endswith(CHECKPOINT)
        assert load_config(LARGE).encoder.num_hidden_layers == 6
        for other in ("owner/name", "smaller", "./small", CHECKPOINT):
            assert shipped.named_model(other) == other

    def test_a_folder_here_comes_first(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "small").mkdir()
        assert shipped.named_model("small") == "small"

    def test_the_default(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv(shipped.VARIABLE, raising=False)
        assert shipped.default_model() == str(shipped.EMBEDDED)
        monkeypatch.setenv(shipped.VARIABLE, "elsewhere")
        assert shipped.default_model() == "elsewhere"
        monkeypatch.setenv(shipped.VARIABLE, LARGE)
        assert shipped.default_model().endswith(CHECKPOINT)

    def test_an_installation_without_it(self, tmp_path, monkeypatch):
        monkeypatch.delenv(shipped.VARIABLE, raising=False)
        monkeypatch.setattr(shipped, "EMBEDDED", tmp_path / "small")
        with pytest.raises(FileNotFoundError, match="--model or in SPINFORMER_MODEL"):
            shipped.default_model()
        assert "small" not in shipped.shipped_models()

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("small", True),
            (LARGE, True),
            ("owner/name", True),
            ("/no/such/folder", True),
            ("./runs/mine", True),
            ("A man sleeps.", False),
            ("Why?", False),
            ("a " * 200, False),
            ("a " * 3000, False),
            ("", False),
        ],
    )
    def test_what_may_be_a_model(self, name, expected):
        assert may_be_model(name) is expected
