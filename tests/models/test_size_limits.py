"""A configuration cannot ask for more than its weights hold: one line, at once, before anything is built."""

import json
import shutil
import time

import pytest
import torch

pytest.importorskip("transformers")

from spinformer.cli import main
from spinformer.explain import Explainer
from spinformer.models import NeuroGameForSequenceClassification, load_classifier
from spinformer.models.additive import AdditiveNetwork
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.identity import weights_digest
from spinformer.models.masked import MaskedClassifier
from spinformer.models.size_limits import WeightSizes, bounded_build
from tests.tiny import NLI, nli_classifier, tokenizer

SECONDS = 20.0  # a million layers take hours


def change(path, **options):
    content = json.loads(path.read_text())
    for name, value in options.items():
        *parts, last = name.split(".")
        place = content
        for part in parts:
            place = place[part]
        place[last] = value
    path.write_text(json.dumps(content))


def refused(load, source, *messages):
    start = time.monotonic()
    with pytest.raises(ValueError) as raised:
        load()
    assert time.monotonic() - start < SECONDS
    assert str(source) in str(raised.value)
    assert "\n" not in str(raised.value)
    for message in messages:
        assert message in str(raised.value)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "bert"
    nli_classifier().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_hidden_layers": 10**6}, "its configuration asks for more than"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most 1,000,000"),
        ({"num_labels": 10**12, "id2label": None}, "num_labels must be at most 1,000,000"),
        ({"hidden_size": 10**12}, "its configuration asks for"),
        ({"hidden_size": 10**6}, "its configuration asks for"),
        ({"vocab_size": 10**11}, "its configuration asks for"),
        ({"max_position_embeddings": 10**10}, "its configuration asks for"),
        ({"intermediate_size": 10**9}, "its configuration asks for"),
        ({"hidden_size": 1e12}, "no model could be read"),
    ],
)
def test_a_classifier(saved, tmp_path, options, message, capsys):
    folder = shutil.copytree(saved, tmp_path / "model")
    change(folder / "config.json", **options)
    refused(lambda: load_classifier(folder, device="cpu"), folder, message)
    refused(lambda: NeuroGameForSequenceClassification.from_encoder(folder), folder)
    assert main(["predict", str(folder), "--device", "cpu"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("spinformer predict: ")
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [{"encoder.num_hidden_layers": 10**6}, {"encoder.hidden_size": 10**12}, {"grounding": {"hidden": 10**12}}],
)
def test_a_neurogame_classifier(encoder, tmp_path, options):
    folder = tmp_path / "model"
    head = "grounded" if "grounding" in options else "neurogame"
    NeuroGameForSequenceClassification.from_encoder(encoder, labels=NLI, head=head).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    change(folder / "config.json", **options)
    for load in (load_classifier, NeuroGameForSequenceClassification.from_pretrained):
        refused(lambda load=load: load(folder), folder, "its configuration asks for")


@pytest.mark.parametrize(
    "options",
    [{"hidden": 10**12}, {"hidden": 10**7}, {"readout": 10**12}, {"dim": 4 * 10**11}, {"layers": [0] * 10**5}],
)
def test_a_game(options, saved, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "model")
    model, own = load_classifier(folder, device="cpu")
    config = GameHeadConfig((0,), 32, 3, heads=4, dim=16, hidden=8, readout=8, model=weights_digest(model))
    GameHead(config).save(folder)
    change(folder / "game" / "game.json", **options)
    refused(lambda: GameHead.load(folder, model), folder, "its configuration asks for")
    explainer = Explainer(model, own)
    assert explainer.grounded is None
    assert "its configuration asks for" in str(explainer.game_error)


def test_an_additive_explainer(saved, tmp_path):
    classifier = MaskedClassifier(*load_classifier(saved, device="cpu"), "attention")
    AdditiveNetwork.for_classifier(classifier, width=8).save(tmp_path, None)
    for width in (10**12, 10**5):
        change(tmp_path / "explainer.json", **{"options.width": width})
        refused(lambda: AdditiveNetwork.load(tmp_path, classifier), tmp_path, "its configuration asks for")


@pytest.mark.parametrize("shape", ["full", "low-rank", "shared", "relative"])
@pytest.mark.parametrize(
    "options",
    [{"dim": 10**9}, {"image": [1, 10**6, 10**6]}, {"patch": 10**9}, {"patch": 0}, {"rank": 10**12}, {"image": [1]}],
)
def test_an_attractor(options, shape, tmp_path, capsys):
    from safetensors.torch import load_file, save_file

    path = tmp_path / "net.safetensors"
    small = AttractorConfig(image=(1, 4, 4), patch=2, shape=shape, rank=2)
    network = AttractorNetwork(small)
    network.save(path)
    if "rank" in options and shape in ("full", "relative"):
        return  # not used
    config = {**vars(small), **options}
    save_file(load_file(path), path, metadata={"config": json.dumps(config)})
    refused(lambda: AttractorNetwork.load(path), path)
    assert main(["retrieve", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_other_threads_and_later_models_are_free():
    message = r"x: its configuration asks for .*; its weights are 1 tensors of 4 bytes"
    with pytest.raises(ValueError, match=message), bounded_build("x", WeightSizes(1, 4)):
        torch.nn.Linear(5000, 5000)
    assert torch.nn.Linear(5000, 5000).weight.numel() == 25_000_000
    import threading

    built = []
    with bounded_build("x", WeightSizes(1, 4)):
        thread = threading.Thread(target=lambda: built.append(torch.nn.Linear(5000, 5000)))
        thread.start()
        thread.join()
    assert built
