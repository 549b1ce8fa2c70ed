"""`reproduce grounding --stage enough`: games from ever more texts, against the exact values of a short text."""

import json
import random

import pytest
import torch

from research.commands.reproduce_grounding import limited
from spinformer._base import records
from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.training.game import GroundingOptions
from tests.tiny import WORDS, bert, tokenizer


def test_fewer_texts_are_among_more():
    texts = Texts([str(row) for row in range(50)])
    few, many = set(limited(texts, 5).first), set(limited(texts, 20).first)
    assert len(few) == 5
    assert few < many
    assert few != {str(row) for row in range(5)}


@pytest.mark.slow
def test_the_stage(tmp_path, monkeypatch):
    from transformers import BertForSequenceClassification

    def small(**options):
        return GroundingOptions(**options, heads=2, dim=8, hidden=16, readout=8)

    monkeypatch.setattr("research.commands.reproduce_grounding.GroundingOptions", small)
    torch.manual_seed(0)
    BertForSequenceClassification(bert(num_labels=2)).save_pretrained(tmp_path / "model")
    tokenizer().save_pretrained(tmp_path / "model")
    draw = random.Random(0)
    for name, count, words in (("train", 48, 6), ("test", 2, 12)):
        lines = (json.dumps({"text": " ".join(draw.choices(WORDS, k=words))}) + "\n" for _ in range(count))
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    command = ["reproduce", "grounding", "--stage", "enough", "--model", str(tmp_path / "model"), "--first", "text"]
    command += ["--texts", str(tmp_path / "train.jsonl"), "--test", str(tmp_path / "test.jsonl"), "--count", "1"]
    command += ["--limits", "20", "40", "1000", "--batch-size", "8", "--epochs", "2", "--subsets", "3"]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path), "--device", "cpu"]
    assert main(command) == 0
    runs = records.read("grounding-enough", tmp_path)["outcome"]["runs"]
    assert [(run["texts"], run["passes"]) for run in runs] == [(20, 120), (40, 240), (48, 288)]
    for run in runs:
        assert run["seconds"] > 0
        assert run["fit"]["texts"] == 2
        assert min(run["words"], run["pairs"]) > 0
        assert run["device"] == "cpu"
    assert main(command) == 0
    assert records.read("grounding-enough", tmp_path)["outcome"]["runs"] == runs  # from file
