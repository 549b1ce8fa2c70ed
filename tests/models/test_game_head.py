"""Files of game heads, with options that no longer exist; and the one loader of classifiers."""

import json
import shutil
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from spinformer.models import GameHead, NeuroGameConfig, load_classifier
from spinformer.models.game_head import GameHeadConfig
from spinformer.models.identity import weights_digest
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from tests.models.test_neurogame import inputs
from tests.tiny import NLI, tokenizer

SIZES = {"layers": (0, 1, 2), "width": 32, "classes": 3, "heads": 4, "dim": 16, "hidden": 32, "readout": 16}
OLD = {"form": "softmax", "scope": "class"}
CHECKPOINT = Path(__file__).parents[2] / "checkpoints" / "neurogame-minilm-nli"


@pytest.fixture(scope="module")
def folder(encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("grounded") / "model"
    model = NeuroGameForSequenceClassification.from_encoder(encoder, labels=NLI, head="cls")
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    GameHead(GameHeadConfig(**SIZES, model=weights_digest(model))).save(folder)
    return folder


def test_the_saved_checkpoint_loads_with_its_game():
    model, words = load_classifier(CHECKPOINT, device="cpu")
    game = GameHead.load(CHECKPOINT, model)
    saved = json.loads((CHECKPOINT / "game" / "game.json").read_text())
    assert game.config == GameHeadConfig(**saved)
    assert game.config.form == "attending"
    assert game.misfit.fit > 0.5  # measured, and worth relying upon
    batch = words("A man is sleeping on a bench.", "A man runs.", return_tensors="pt")
    with torch.no_grad():
        logits = model(**batch).logits
    torch.testing.assert_close(logits, torch.tensor([[-3.0640, -1.9860, 4.2569]]), rtol=0, atol=2e-3)


def test_options_that_no_longer_exist(folder, tmp_path):
    folder = shutil.copytree(folder, tmp_path / "model")
    model, _ = load_classifier(folder, device="cpu")
    path = folder / "game" / "game.json"
    saved = json.loads(path.read_text())
    first = {name: value for name, value in saved.items() if name not in ("form", "reads")}
    for old in (first, first | OLD):  # before there were forms, and when sums were called softmax
        path.write_text(json.dumps(old))
        assert GameHead.load(folder, model).config == GameHeadConfig(**saved)
        assert GameHead.load(folder, model).config.form == "sums"
    forms = "form must be one of 'sums', 'attending'; got '{}'$"
    removed = "option 'scope' was removed; only 'class' is supported, got 'decision'. .* is 91dd5b7$"
    for name, value, message in (
        ("form", "norm", forms.format("norm")),
        ("form", "mean", forms.format("mean")),
        ("scope", "decision", removed),
    ):
        path.write_text(json.dumps(saved | {name: value}))
        with pytest.raises(ValueError, match=message) as raised:
            GameHead.load(folder, model)
        assert "\n" not in str(raised.value)
        with pytest.raises(ValueError, match=message):
            NeuroGameConfig(head="grounded", grounding={name: value}).game_head_config()
    assert NeuroGameConfig(head="grounded", grounding=OLD).game_head_config().layers == (0, 6, 12)


def test_a_folder_is_a_path_or_a_string(folder):
    for source in (folder, str(folder)):
        model, words = load_classifier(source)
        assert not model.training
        assert model.device.type == ("cuda" if torch.cuda.is_available() else "cpu")
        assert model(**{name: value.to(model.device) for name, value in inputs().items()}).logits.shape == (3, 3)
        assert len(words) == len(tokenizer())
    with pytest.raises(ValueError, match="device must be one of this machine's, as cpu or cuda; got 'tpu9'"):
        load_classifier(folder, device="tpu9")
    with pytest.raises(ValueError, match="device must be one of this machine's"):
        load_classifier(folder, "nonsense")
