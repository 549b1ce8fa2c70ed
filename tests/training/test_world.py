"""Training, evaluating and the command line leave the caller's world alone."""

import pytest

pytest.importorskip("transformers")
pytest.importorskip("accelerate")
pytest.importorskip("tensorboard")

from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.evaluate import evaluate
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.train import train_classifier
from tests.explain.world import assert_same, snapshot
from tests.tiny import NLI, nli_classifier, save_rows, tokenizer


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    return str(save_rows(folder / "train.jsonl", 32)), str(save_rows(folder / "dev.jsonl", 16, seed=1))


def test_training(encoder, data, tmp_path):
    recipe = ClassifierRecipe(encoder=str(encoder), train=data[0], dev=data[1], batch_size=16, epochs=1)
    before = snapshot()
    train_classifier(recipe, tmp_path / "run", quiet=True)
    assert_same(before, snapshot())


def test_evaluation():
    model = nli_classifier().train()
    before = snapshot(model)
    texts = Texts(["the dog runs", "a man eats"], ["a cat sleeps", "not"], [0, 1], NLI)
    evaluate(model, tokenizer(), texts)
    assert_same(before, snapshot(model))


@pytest.mark.usefixtures("few_dynamics")
def test_commands(data, tmp_path, capsys):
    model, folder = nli_classifier(), str(tmp_path / "model")
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    lines = [
        f"predict {folder} {data[1]}",
        f"evaluate {folder} {data[1]} --output {tmp_path / 'results'}",
        f"evaluate {folder} {data[1]} --explanations --count 2 --passes 16 --methods random leave-one-out --seeds 0"
        f" --output {tmp_path / 'faithful.json'}",
        f"explain {folder} --file {data[1]} --limit 1 --passes 16 --html {tmp_path / 'report.html'}",
        f"train attractor --limit 64 --epochs 1 --patch 7 --output {tmp_path / 'net.safetensors'}",
        f"retrieve {tmp_path / 'net.safetensors'} --output {tmp_path / 'pictures'}",
    ]
    for line in lines:
        before = snapshot()
        assert main(line.split()) == 0, line
        assert_same(before, snapshot())
