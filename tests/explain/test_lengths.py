"""How much of a text is read: as much as the model takes, and what is cut is said."""

import pytest
import torch
from transformers import BertForSequenceClassification, T5Config, T5ForSequenceClassification

from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.explain import Explainer, Explanation
from spinformer.models.lengths import UNLIMITED, model_limit, resolve_max_length
from tests.tiny import bert, tokenizer

LONG = " ".join(["the man runs"] * 13 + ["red"])  # 40 words


def classifier(positions=128):
    torch.manual_seed(0)
    return BertForSequenceClassification(bert(num_labels=3, max_position_embeddings=positions)).eval()


class TestLimit:
    def test_the_smaller_of_model_and_tokenizer(self):
        own = tokenizer()
        assert model_limit(classifier(48), own) == 48
        own.model_max_length = 32
        assert model_limit(classifier(48), own) == 32

    def test_none_known(self):
        sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2, "vocab_size": 22}
        model = T5ForSequenceClassification(T5Config(**sizes))  # whose positions are relative
        own = tokenizer()
        own.model_max_length = int(1e30)  # so transformers writes that there is none
        assert model_limit(model, own) is None
        assert resolve_max_length(model, own, None) == UNLIMITED

    def test_more_than_the_model_takes_is_refused(self):
        with pytest.raises(ValueError, match="max_length must be at most 48, what the model takes; got 1024"):
            Explainer(classifier(48), tokenizer(), max_length=1024)


class TestCut:
    def test_the_last_word_is_read_by_default(self):
        explanation = Explainer(classifier(), tokenizer())(LONG, method="leave-one-out")
        assert explanation.words[-1].text == "red"
        assert explanation.unread == ("",)
        assert not explanation.notes

    def test_what_is_cut_is_said_and_shown(self, tmp_path):
        explanation = Explainer(classifier(24), tokenizer())(LONG, method="leave-one-out")
        assert len(explanation.words) == 22  # and two special tokens
        assert explanation.unread[0].endswith("man runs red")
        assert explanation.notes == ("cut at 24 tokens; not read: the last 18 words",)
        assert "not read: the last 18 words" in str(explanation)
        assert '<span class="unread" title="not read">' in explanation.to_html()
        assert Explanation.load(explanation.save(tmp_path / "one.json")) == explanation

    def test_of_a_pair(self):
        explanation = Explainer(classifier(24), tokenizer())(LONG, "a dog sleeps", method="leave-one-out")
        assert explanation.unread[1] == ""
        (note,) = explanation.notes
        assert note == "cut at 24 tokens; not read: the last 22 words of text 1"

    def test_one_word(self):
        explanation = Explainer(classifier(41), tokenizer())(LONG, method="leave-one-out")
        assert explanation.notes == ("cut at 41 tokens; not read: the last word",)

    def test_a_text_that_just_fits_is_not_cut(self):
        assert Explainer(classifier(42), tokenizer())(LONG, method="leave-one-out").unread == ("",)

    def test_batches_tell_each_text_its_own(self):
        words = split_words(tokenizer(), Texts(["the man", LONG]), 24)
        assert words.unread[0] == ("",)
        assert words.unread[1][0]
        assert words.rows(1, 2).unread == words.unread[1:]
        assert words.to("cpu").unread == words.unread


def test_on_the_command_line(tmp_path, capsys):
    classifier(24).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    assert main(["explain", str(tmp_path), LONG, "--method", "leave-one-out"]) == 0
    assert "not read: the last 18 words" in capsys.readouterr().out
    assert main(["explain", str(tmp_path), LONG, "--max-length", "1024"]) == 2
    assert capsys.readouterr().err.strip().endswith("must be at most 24, what the model takes; got 1024")
