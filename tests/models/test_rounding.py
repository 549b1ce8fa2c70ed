"""Weights in 8 bits: how far off they are, that rounding them twice changes nothing, and that models load from them."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("transformers")

from transformers import AutoModel, AutoModelForSequenceClassification

from spinformer.models import GameHead, NeuroGameForSequenceClassification, load_classifier
from spinformer.models.game_head import GameHeadConfig
from spinformer.models.identity import weights_digest
from spinformer.models.rounding import SCALE, are_rounded, read_weights, restore_rows, round_file, round_rows
from spinformer.models.saving import save_model
from tests.models.test_neurogame import inputs
from tests.tiny import NLI, tokenizer

SIZES = {"layers": (0, 1, 2), "width": 32, "classes": 3, "heads": 4, "dim": 16, "hidden": 32, "readout": 16}


def rows(generator):
    """Rows of every size: ordinary, tiny, huge, one number alone, all zero."""
    matrix = torch.randn(64, 33, generator=generator) * 10.0 ** torch.randint(-12, 12, (64, 1), generator=generator)
    matrix[3], matrix[4] = 0.0, torch.eye(33)[7] * -2.5
    return matrix


class TestRows:
    def test_error_is_at_most_half_a_step(self, generator):
        matrix = rows(generator)
        stored = round_rows({"w": matrix})
        assert stored["w"].dtype == torch.int8
        assert stored["w" + SCALE].shape == (64,)
        restored = restore_rows(stored)["w"]
        assert restored.dtype == torch.float32
        largest = matrix.abs().amax(1, keepdim=True)
        # Half a step, and what a scale of 12 significant bits cuts from the largest number.
        assert bool(((matrix - restored).abs() <= largest * (0.5 / 127 + 2**-11) * (1 + 1e-5)).all())
        assert torch.equal(restored[3], torch.zeros(33))

    def test_rounding_twice_changes_nothing(self, generator):
        stored = round_rows({"w": rows(generator)})
        again = round_rows(restore_rows(stored))
        assert stored.keys() == again.keys()
        assert all(torch.equal(stored[name], again[name]) for name in stored)

    def test_only_matrices_are_rounded(self, generator):
        weights = {"bias": torch.randn(5, generator=generator), "ids": torch.arange(6).view(2, 3)}
        stored = round_rows(weights)
        assert stored.keys() == weights.keys()
        assert all(torch.equal(stored[name], weights[name]) for name in weights)
        half = round_rows({"w": torch.ones(2, 3, dtype=torch.float16)})
        assert torch.equal(restore_rows(half)["w"], torch.full((2, 3), float(half["w" + SCALE][0]) * 127))

    def test_numbers_that_are_not_finite(self):
        with pytest.raises(ValueError, match="w has numbers that are not finite"):
            round_rows({"w": torch.tensor([[1.0, torch.inf]])})

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda stored: stored.pop("w"), "must be the scales of the rows of a matrix"),
            (lambda stored: stored.pop("w" + SCALE), "w is in 8 bits, and there are no scales"),
            (lambda stored: stored.update({"w" + SCALE: torch.ones(3)}), "must be the scales of the rows of a matrix"),
            (lambda stored: stored.update({"w" + SCALE: torch.full((2,), torch.nan)}), "must be finite numbers"),
            (lambda stored: stored.update({"w": torch.ones(2, 4)}), "must be the scales of the rows of a matrix"),
        ],
    )
    def test_files_whose_parts_do_not_fit(self, tmp_path, change, message):
        stored = round_rows({"w": torch.ones(2, 4)})
        change(stored)
        save_file(stored, tmp_path / "w.safetensors")
        with pytest.raises(ValueError, match=message) as raised:
            read_weights(tmp_path / "w.safetensors")
        assert str(tmp_path) in str(raised.value)

    def test_a_file(self, tmp_path, generator):
        path = tmp_path / "w.safetensors"
        weights = {"w": torch.randn(40, 96, generator=generator), "b": torch.ones(3)}
        save_file(weights, path)
        before = path.stat().st_size
        assert not are_rounded([path])
        round_file(path)
        assert are_rounded([path])
        assert not are_rounded([path, path])
        assert not are_rounded([])
        assert path.stat().st_size < before / 3
        assert torch.equal(read_weights(path)["w"], restore_rows(round_rows(weights))["w"])


@pytest.fixture(scope="module")
def model(encoder):
    torch.manual_seed(0)
    return NeuroGameForSequenceClassification.from_encoder(encoder, labels=NLI).eval()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """The classifier in 8 bits, with a game of its own, in 8 bits too."""
    folder = tmp_path_factory.mktemp("rounded") / "model"
    save_model(model, tokenizer(), folder, rounded=True)
    loaded, _ = load_classifier(folder, device="cpu")
    GameHead(GameHeadConfig(**SIZES, model=weights_digest(loaded))).save(folder, rounded=True)
    return folder


class TestClassifier:
    def test_loads_as_the_rounded_weights(self, model, folder):
        expected = restore_rows(round_rows(model.state_dict()))
        loaded, words = load_classifier(folder, device="cpu")
        assert (len(words), loaded.name_or_path, loaded.dtype) == (len(tokenizer()), str(folder), torch.float32)
        state = loaded.state_dict()
        assert state.keys() == expected.keys()
        assert all(torch.equal(state[name], expected[name]) for name in expected)
        with torch.no_grad():
            torch.testing.assert_close(loaded(**inputs()).logits, model(**inputs()).logits, rtol=0, atol=0.05)

    def test_every_way_to_load_it(self, folder):
        loaded, _ = load_classifier(folder, device="cpu")
        with torch.no_grad():
            expected = loaded(**inputs()).logits
            for kind in (NeuroGameForSequenceClassification, AutoModelForSequenceClassification):
                assert torch.equal(kind.from_pretrained(folder)(**inputs()).logits, expected)
        half, report = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.bfloat16, output_loading_info=True
        )
        assert half.dtype == torch.bfloat16
        assert not report["missing_keys"]
        base = AutoModel.from_pretrained(folder)
        assert torch.equal(base.get_input_embeddings().weight, loaded.get_input_embeddings().weight)

    def test_saved_again_it_is_float32_and_the_same(self, folder, tmp_path):
        loaded, words = load_classifier(folder, device="cpu")
        save_model(loaded, words, tmp_path / "plain")
        assert not are_rounded([tmp_path / "plain" / "model.safetensors"])
        plain, _ = load_classifier(tmp_path / "plain", device="cpu")
        assert all(torch.equal(value, plain.state_dict()[name]) for name, value in loaded.state_dict().items())
        save_model(plain, words, tmp_path / "rounded", rounded=True)
        one, other = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "rounded"))
        assert all(torch.equal(one[name], other[name]) for name in one)

    def test_its_game(self, folder):
        loaded, _ = load_classifier(folder, device="cpu")
        head = GameHead.load(folder, loaded)
        stored = load_file(folder / "game" / "game.safetensors")
        assert {value.dtype for value in stored.values()} == {torch.int8, torch.float32}
        assert all(torch.equal(head.state_dict()[name], value) for name, value in restore_rows(stored).items())

    def test_weights_that_are_missing_or_too_many(self, folder, tmp_path):
        stored = load_file(folder / "model.safetensors")
        bias = next(name for name in stored if name.startswith("classifier.") and name.endswith("bias"))
        fewer = {name: value for name, value in stored.items() if name != bias}
        (tmp_path / "config.json").write_text((folder / "config.json").read_text())
        tokenizer().save_pretrained(tmp_path)
        for changed, message in (
            (fewer, f"missing keys: {bias}"),
            (stored | {"extra": torch.ones(2)}, "unexpected keys: extra"),
        ):
            save_file(changed, tmp_path / "model.safetensors", metadata={"format": "pt"})
            with pytest.raises(ValueError, match=message) as raised:
                load_classifier(tmp_path, device="cpu")
            assert "\n" not in str(raised.value)

    def test_a_configuration_that_asks_for_more(self, folder, tmp_path):
        config = json.loads((folder / "config.json").read_text())
        config["encoder"]["num_hidden_layers"] = 10**5
        (tmp_path / "config.json").write_text(json.dumps(config))
        tokenizer().save_pretrained(tmp_path)
        save_file(load_file(folder / "model.safetensors"), tmp_path / "model.safetensors")
        with pytest.raises(ValueError, match="its configuration asks for more than"):
            load_classifier(tmp_path, device="cpu")
