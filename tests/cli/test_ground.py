"""`spinformer ground`: a game for a saved classifier, its report, and bad input before any training."""

import json

import pytest
import torch

pytest.importorskip("transformers")

from transformers import BertForSequenceClassification

from spinformer.cli import main, parse
from spinformer.explain import Explainer
from spinformer.models.game_head import GameHead, GameHeadConfig
from tests.tiny import NLI, bert, save_rows, tokenizer

SMALL = ["--heads", "4", "--dim", "16", "--hidden", "32", "--readout", "16", "--batch-size", "8", "--device", "cpu"]


@pytest.fixture
def model(tmp_path):
    """The folder of a classifier without a game."""
    folder = tmp_path / "model"
    BertForSequenceClassification(bert(num_labels=3, id2label=dict(enumerate(NLI)))).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def texts(tmp_path):
    return save_rows(tmp_path / "texts.jsonl", 40)


def ground(*words):
    return main(["ground", *map(str, words), *SMALL])


def test_a_game_in_the_folder_of_the_model(model, texts, capsys):
    weights = (model / "model.safetensors").read_bytes()
    assert ground(model, texts, "--held-out", 8) == 0
    shown = capsys.readouterr().out
    assert "fit of v(C) on 8 unseen texts: R squared" in shown
    assert "on texts that it learnt from" in shown
    assert "leave-one-out" in shown
    assert f"the game is in {model / 'game'}" in shown
    assert json.loads((model / "game" / "report.json").read_text())["texts"] == 8
    assert (model / "model.safetensors").read_bytes() == weights
    explanation = Explainer.from_pretrained(model, device="cpu")("a man runs", "a dog")
    assert (explanation.method, explanation.passes) == ("shapley", 1)


def test_a_game_from_a_stream(model, texts, capsys):
    assert ground(model, texts, "--stream", "--held-out", 8, "--gain", 0.5) == 0
    shown = capsys.readouterr().out
    assert "learning from a stream, until twice as many texts bring little" in shown
    assert "learnt from all 32 texts of the stream" in shown
    assert "; so few texts teach more without a stream" in shown
    assert "fit of v(C) on 4 unseen texts" in shown  # a tenth
    assert f"the game is in {model / 'game'}" in shown


def test_how_many_are_held_out(texts):
    """By default as many as `hold_out` holds out; without --limit, all other texts are learnt from."""
    from spinformer.cli import ground as command

    for options, learnt, held in (([], 36, 4), (["--limit", "19"], 18, 1), (["--held-out", "39"], 1, 39)):
        args = parse(["ground", "MODEL", str(texts), *options])
        training, held_out = command._split(args)
        assert (len(training), len(held_out)) == (learnt, held)
    assert command._split(parse(["ground", "MODEL", str(texts), "--limit", "9"]))[1] is None


def test_too_few_texts_to_hold_some_out(model, tmp_path, capsys):
    """None is: a report of an earlier game would be of another, and explanations say that nothing was measured."""
    (model / "game").mkdir()
    (model / "game" / "report.json").write_text("{}")
    assert ground(model, save_rows(tmp_path / "few.jsonl", 9), "--epochs", 1) == 0
    assert "fewer than 10 texts: none was held out, so how far the game" in capsys.readouterr().out
    assert not (model / "game" / "report.json").exists()
    assert "it was not measured" in Explainer.from_pretrained(model, device="cpu")("a man", "a dog").notes[0]


def test_what_does_not_go_with_a_stream(model, texts, tmp_path, capsys):
    assert ground(model, texts, "--stream", "--limit", 20) == 2
    assert "--limit goes with texts in memory; got --limit 20 and --stream" in capsys.readouterr().err
    assert ground(model, save_rows(tmp_path / "few.jsonl", 9), "--stream") == 2
    assert "expected at least 10 texts" in capsys.readouterr().err


def test_options(model, texts, tmp_path, capsys):
    options = [
        "--masking",
        "delete",
        "--layers",
        "0",
        "2",
        "--limit",
        "20",
        "--held-out",
        "4",
        "--columns",
        "hypothesis",
    ]
    assert ground(model, texts, "--output", tmp_path / "new", *options) == 0
    config = json.loads((tmp_path / "new" / "game" / "game.json").read_text())
    assert (config["masking"], config["layers"], config["heads"]) == ("delete", [0, 2], 4)
    assert not (model / "game").exists()
    explainer = Explainer.from_pretrained(model, device="cpu", game=tmp_path / "new")
    assert explainer.classifier.masking == "delete"


def test_a_game_of_another_classifier_is_replaced(model, texts, capsys):
    with torch.random.fork_rng():
        GameHead(GameHeadConfig((0,), 32, 3, heads=4, dim=16, model="another")).save(model)
    assert main(["explain", str(model), "a man", "--device", "cpu"]) == 2
    assert ground(model, texts, "--held-out", 8) == 0
    assert main(["explain", str(model), "a man", "--device", "cpu"]) == 0


def test_bad_input(model, texts, tmp_path, capsys):
    for words, message in (
        (("someone/model", texts), "someone/model is not a folder here; name one for the game head with --output"),
        ((model, texts, "--limit", 10, "--held-out", 10), "--held-out must be below the number of texts, 10; got 10"),
        ((model, texts, "--held-out", 0), "--held-out must be an integer of at least 1; got 0"),
        ((model, texts, "--limit", 0), "--limit must be an integer of at least 1; got 0"),
        ((model, texts, "--held-out", 200, "--gain", 2), "gain must be from 0 to 1; got 2"),
        ((model, tmp_path / "none.csv"), "none.csv"),
        ((model, texts, "--held-out", 8, "--epochs", -1), "epochs must be an integer of at least 0; got -1"),
        ((model, texts, "--held-out", 36), "expected at least one batch of 8 texts; got 4"),
    ):
        assert ground(*words) == 2
        shown = capsys.readouterr().err
        assert message in shown
        assert shown.strip().count("\n") == 0
