"""`reproduce tasks`: classifiers of classes, of labels and of scores, fine-tuned, grounded and measured."""

import gzip
import json
import random
from dataclasses import replace

import pytest
import torch

from research.experiments.tasks import TASKS, Task, loss_of, quality, read_task, texts_to_ground
from spinformer._base import records
from spinformer.cli import main
from spinformer.models.loading import load_classifier
from spinformer.models.outputs import outputs_of
from spinformer.training.game import GroundingOptions
from tests.tiny import WORDS

SMALL = {
    "classes": Task("reviews", "reviews", epochs=1, max_length=32, passes=20, more=("other",), splices=10),
    "labels": Task("feelings", "feelings", answer="labels", outputs="labels", epochs=1, max_length=32, passes=20),
    "scores": Task("pairs", "pairs", ("premise", "hypothesis"), "score", "scores", epochs=1, max_length=32, passes=20),
}


def write(folder, name, rows):
    with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def data(tmp_path):
    draw = random.Random(0)

    def text(shortest=3):
        return " ".join(draw.choices(WORDS, k=draw.randint(shortest, shortest + 2)))

    folder = tmp_path / "data"
    folder.mkdir()
    write(folder, "reviews", [{"text": text(6), "label": ("good", "bad")[row % 2]} for row in range(32)])
    write(folder, "other", [{"text": text(6)} for _ in range(4)])
    names = ("calm", "glad", "sad")
    feelings = [{"text": text(), "labels": sorted(draw.sample(names, row % 3))} for row in range(32)]
    write(folder, "feelings", feelings)
    write(folder, "pairs", [{"premise": text(), "hypothesis": text(), "score": row % 6} for row in range(32)])
    return folder


def test_answers_are_read_as_their_kind_has_them(data):
    classes = read_task(SMALL["classes"], data, "train")
    assert classes.names == ("bad", "good")
    assert classes.answers.tolist()[:2] == [1, 0]
    labels = read_task(SMALL["labels"], data, "test", ("sad", "calm", "glad"))
    assert labels.answers.shape == (32, 3)
    assert labels.answers.sum(1).tolist()[:3] == [0, 1, 2]
    scores = read_task(SMALL["scores"], data, "train")
    assert scores.texts.paired
    assert scores.answers.tolist()[:6] == [0, 1, 2, 3, 4, 5]


def test_texts_to_ground_on(data):
    task = SMALL["classes"]
    train = read_task(task, data, "train").texts
    texts = texts_to_ground(task, train, data)
    assert len(texts) == 32 + 4 + 10
    assert {name for name, _ in texts.digests} == {"reviews.jsonl.gz", "other.jsonl.gz"}


def test_pairs_to_ground_on_are_drawn_from_others(data):
    task = replace(SMALL["scores"], more=("pairs",), drawn=5)
    train = read_task(task, data, "train").texts
    texts = texts_to_ground(task, train, data)
    assert len(texts) == 32 + 5
    rows = set(zip(train.first, train.second, strict=True))
    assert set(zip(texts.first, texts.second, strict=True)) == rows


def test_long_texts_are_spliced_to_their_length(data):
    task = replace(SMALL["classes"], more=(), max_length=512, splices=6)
    train = read_task(task, data, "train").texts
    texts = texts_to_ground(task, train, data)
    assert list(texts.first[:32]) == list(train.first)
    assert len(texts) == 32 + 6


def test_loss_and_quality():
    logits = torch.tensor([[2.0, -1.0], [0.5, 1.0]])
    assert quality(logits, torch.tensor([0, 0]), "classes") == {"accuracy": 0.5}
    assert quality(logits, torch.tensor([[1.0, 0.0], [0.0, 1.0]]), "labels")["f1"] == pytest.approx(0.8)
    score = torch.tensor([[1.0], [2.0], [4.0]])
    assert quality(score, torch.tensor([2.0, 4.0, 8.0]), "scores")["pearson"] == pytest.approx(1.0)
    assert float(loss_of(score, torch.tensor([1.0, 2.0, 3.0]), "scores")) == pytest.approx(1 / 3)
    assert float(loss_of(torch.zeros(1, 4), torch.tensor([2]), "classes")) == pytest.approx(1.3863, abs=1e-4)
    assert float(loss_of(torch.zeros(1, 4), torch.ones(1, 4), "labels")) == pytest.approx(0.6931, abs=1e-4)


@pytest.mark.slow
def test_the_command(data, encoder, tmp_path, monkeypatch, capsys):
    def small(**options):
        return GroundingOptions(**options, heads=2, dim=8, hidden=16, readout=8)

    monkeypatch.setattr("research.commands.reproduce_tasks.TASKS", SMALL)
    monkeypatch.setattr("research.commands.reproduce_tasks.GroundingOptions", small)
    command = ["reproduce", "tasks", "--data", str(data), "--encoder", f"minilm={encoder}", "--device", "cpu"]
    command += ["--count", "3", "--epochs", "1", "--subsets", "2", "--batch-size", "8"]
    command += ["--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results")]
    assert main(command) == 0
    assert "KernelSHAP's" in capsys.readouterr().out
    outcome = records.read("tasks", tmp_path / "results")["outcome"]["tasks"]
    assert list(outcome) == list(SMALL)
    for name, found in outcome.items():
        assert outputs_of(load_classifier(tmp_path / "runs" / name)[0]) == name
        assert found["faithfulness"]["texts"] == 3
        assert {"shapley", "kernel-shap"} <= set(found["faithfulness"]["methods"])
        assert found["seconds"] > 0
        assert found["r2"] == found["fit"]["pooled"]
    made = (tmp_path / "runs/labels/model.safetensors").stat().st_mtime_ns
    assert main(command) == 0
    assert (tmp_path / "runs/labels/model.safetensors").stat().st_mtime_ns == made


def test_what_is_missing_is_said_before_any_work(data, capsys):
    assert main(["reproduce", "tasks", "--data", str(data)]) == 2
    assert "expected --encoder minilm=FOLDER" in capsys.readouterr().err
    assert main(["reproduce", "tasks", "--data", str(data), "--encoder", "minilm=x", "--only", "stsb"]) == 2
    assert "lacks snli_train.jsonl.gz, stsb_test.jsonl.gz, stsb_train.jsonl.gz" in capsys.readouterr().err


def test_the_tasks_are_of_every_kind():
    assert {task.outputs for task in TASKS.values()} == {"classes", "labels", "scores"}
