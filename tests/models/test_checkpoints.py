"""Folders that hold no model, another model or a damaged one: each is one line that names the folder."""

import json
import shutil

import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from spinformer.models import load_classifier
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from tests.tiny import NLI, tokenizer


@pytest.fixture(scope="module")
def whole(encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "whole"
    NeuroGameForSequenceClassification.from_encoder(str(encoder), labels=NLI).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "model")


def refused(path, *messages, kind=ValueError):
    for load in (NeuroGameForSequenceClassification.from_pretrained, lambda p: load_classifier(str(p))):
        with pytest.raises((ValueError, FileNotFoundError)) as raised:
            load(path)
        assert str(path) in str(raised.value)
        assert "\n" not in str(raised.value)
        if load == NeuroGameForSequenceClassification.from_pretrained:
            assert raised.type is kind
            for message in messages:
                assert message in str(raised.value)


def test_a_whole_one_loads(folder):
    model = NeuroGameForSequenceClassification.from_pretrained(folder)
    again, info = NeuroGameForSequenceClassification.from_pretrained(
        pretrained_model_name_or_path=str(folder), output_loading_info=True
    )
    assert not info["missing_keys"]
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


@pytest.mark.parametrize("damage", ["truncated", "half", "garbage", "empty"])
def test_damaged_weights(folder, damage):
    file = folder / "model.safetensors"
    data = file.read_bytes()
    file.write_bytes(
        {"truncated": data[:-10], "half": data[: len(data) // 2], "garbage": b"\xff" * 999, "empty": b""}[damage]
    )
    refused(folder, "the checkpoint is damaged")


def test_weights_that_are_not_there(folder):
    (folder / "model.safetensors").unlink()
    refused(folder, "no model could be read from", "model.safetensors")


@pytest.mark.parametrize("change", ["fewer", "more"])
def test_weights_of_another_model(folder, change):
    weights = load_file(folder / "model.safetensors")
    if change == "fewer":
        del weights["classifier.1.weight"]
    else:
        weights["classifier.9.weight"] = torch.zeros(3)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    if change == "fewer":
        refused(folder, "missing keys: classifier.1.weight")
    else:
        with pytest.raises(ValueError, match=r"unexpected keys: classifier\.9\.weight"):
            NeuroGameForSequenceClassification.from_pretrained(folder)


def test_a_configuration_that_does_not_fit_the_weights(folder):
    config = json.loads((folder / "config.json").read_text())
    config["encoder"]["intermediate_size"] = 128
    (folder / "config.json").write_text(json.dumps(config))
    refused(folder, "mismatched keys: model.encoder.encoder.layer.0.intermediate.dense.bias")
    for options in ({}, {"ignore_mismatched_sizes": True}):
        with pytest.raises(ValueError, match="intermediate"):
            AutoModelForSequenceClassification.from_pretrained(folder, **options)


def test_a_configuration_that_is_not_there_or_not_json(folder):
    (folder / "config.json").write_text("{nonsense")
    refused(folder, "config.json: damaged, it is not JSON")
    (folder / "config.json").unlink()
    refused(folder, "no config.json, so it is not a model; its files are ['model.safetensors'")


@pytest.mark.parametrize("text", ["[]", "{}", '{"model_type": 3}'])
def test_a_configuration_of_nothing(folder, text):
    (folder / "config.json").write_text(text)
    refused(folder, "expected a 'neurogame' model")


def test_another_architecture(encoder):
    refused(encoder, "expected a 'neurogame' model; its config.json says 'bert'")


def test_no_folder(tmp_path):
    none = tmp_path / "none"
    refused(none, f"expected a folder with a saved model at {none}; there is nothing", kind=FileNotFoundError)
    file = tmp_path / "file"
    file.write_text("x")
    refused(file, f"expected a folder with a saved model at {file}; there is a file", kind=FileNotFoundError)


def test_options_of_a_game_that_is_none(folder):
    config = json.loads((folder / "config.json").read_text())
    config["game"] = {"dampening": 1}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(TypeError, match=r"unknown option\(s\) dampening"):
        NeuroGameForSequenceClassification.from_pretrained(folder)


def test_an_encoder_without_all_its_weights(encoder, tmp_path):
    folder = shutil.copytree(encoder, tmp_path / "encoder")
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "layer.1.output.dense.weight" in name)
    del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=f"{folder}: .* missing keys: encoder.layer.1.output.dense.weight"):
        NeuroGameForSequenceClassification.from_encoder(str(folder))
