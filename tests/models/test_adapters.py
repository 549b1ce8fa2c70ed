"""Folders of peft, an adapter and the name of its base model, are read as whole models are, or refused in one line."""

import json
import shutil
import sys

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertForSequenceClassification

from spinformer import Explainer
from spinformer.models.loading import load_classifier
from tests.tiny import NLI, bert, nli_classifier, tokenizer

TEXT = ("the man sleeps", "a dog runs")
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


def adapt(model):
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"], init_lora_weights=False)
    torch.manual_seed(5)
    return peft.get_peft_model(model, config).eval()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The explainer of a model with an adapter, and the folder that it was saved in."""
    folder = tmp_path_factory.mktemp("adapters")
    nli_classifier().save_pretrained(folder / "base")
    tokenizer().save_pretrained(folder / "base")
    model, own = load_classifier(folder / "base", device="cpu")
    explainer = Explainer(adapt(model), own)
    explainer.save(folder / "adapter")
    assert not (folder / "adapter" / "config.json").exists()
    return explainer, folder / "adapter"


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved[1], tmp_path / "adapter")


def change(folder, **options):
    path = folder / CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | options))


def test_saved_and_loaded(saved, tmp_path):
    explainer, folder = saved
    before = torch.get_rng_state()
    loaded = Explainer.from_pretrained(folder, device="cpu")
    assert torch.equal(torch.get_rng_state(), before)
    expected = explainer(*TEXT)
    assert loaded(*TEXT) == expected
    assert list(expected.probabilities) == list(NLI)
    base = Explainer(loaded.model.get_base_model(), loaded.tokenizer)
    with loaded.model.disable_adapter():
        assert base(*TEXT).probabilities != expected.probabilities
    loaded.save(tmp_path)
    assert Explainer.from_pretrained(tmp_path, device="cpu")(*TEXT) == expected


def test_its_game_lies_beside_it(folder):
    loaded = Explainer.from_pretrained(folder, device="cpu")
    sizes = {"heads": 2, "dim": 8, "hidden": 8, "readout": 8, "batch_size": 8, "epochs": 1}
    loaded.ground([TEXT] * 16, **sizes)
    loaded.save(folder)
    assert Explainer.from_pretrained(folder, device="cpu")(*TEXT) == loaded(*TEXT)


def test_classes_of_its_own_and_no_tokenizer(saved, tmp_path):
    """As peft itself saves it: the layer of the classes is the adapter's, the tokenizer the base model's."""
    base = str(saved[1].with_name("base"))
    model = adapt(BertForSequenceClassification(bert(num_labels=5)))
    model.peft_config["default"].base_model_name_or_path = base
    weights = load_file(saved[1].with_name("base") / "model.safetensors")
    model.get_base_model().bert.load_state_dict(
        {name.removeprefix("bert."): value for name, value in weights.items() if name.startswith("bert.")}, strict=False
    )
    model.save_pretrained(tmp_path)
    loaded, own = load_classifier(tmp_path, device="cpu")
    inputs = own(*TEXT, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(loaded(**inputs).logits, model(**inputs).logits, atol=1e-5, rtol=1e-4)
    assert loaded.config.num_labels == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"peft_type": "PROMPT_TUNING"}, "expected an adapter of kind LORA, .*; got 'PROMPT_TUNING'$"),
        ({"task_type": "CAUSAL_LM"}, "expected an adapter of a sequence classifier; got 'CAUSAL_LM'$"),
        ({"megatron_config": {}}, "asks for code of Megatron, which is not run; expected none$"),
        ({"base_model_name_or_path": None}, "must name the base model; got none$"),
        ({"base_model_name_or_path": "/not/here"}, "expected a folder with a saved model at /not/here; .* nothing$"),
        ({"r": 10**7}, "its configuration asks for .* numbers or more; its weights are"),
        ({"r": 4}, "size mismatch for .*lora_A"),
        ({"target_modules": ["key"]}, "missing keys: .*key.lora_A.weight"),
    ],
)
def test_options_that_do_not_fit(folder, options, message):
    change(folder, **options)
    with pytest.raises(ValueError, match=rf"^(no model could be read from )?{folder}: .*{message}"):
        load_classifier(folder)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda weights: weights.pop(min(weights)), "missing keys: base_model.model.bert.*lora_A.weight$"),
        (lambda weights: weights.update({"base_model.x": torch.zeros(1)}), "unexpected keys: base_model.x$"),
    ],
)
def test_weights_that_do_not_fit(folder, damage, message):
    weights = load_file(folder / WEIGHTS)
    damage(weights)
    save_file(weights, folder / WEIGHTS)
    with pytest.raises(ValueError, match=f"^{folder}: the weights are not those of .*; {message}"):
        load_classifier(folder)


def test_without_weights_or_peft(folder, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "peft", None)
        with pytest.raises(ValueError, match=r"peft is not installed; `pip install 'spinformer\[lora\]'` brings it$"):
            load_classifier(folder)
    (folder / WEIGHTS).rename(folder / "adapter_model.bin")
    with pytest.raises(ValueError, match=rf"expected the adapter's weights in {WEIGHTS}; there is no such file$"):
        load_classifier(folder)


def test_an_adapter_needs_a_base_model_with_a_name(tmp_path):
    with pytest.raises(ValueError, match=r"^an adapter is saved without its base model, .*: save that first$"):
        Explainer(adapt(nli_classifier()), tokenizer()).save(tmp_path / "none")
    assert not (tmp_path / "none").exists()
