"""The bare layer put to use, on a few images with a small grid."""

import pytest
import torch

from research.experiments import attractor_use
from research.reports import attractor as tables
from spinformer.data import images as data
from spinformer.models.attractor import AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(attractor_use, "STRENGTHS", (0.5, 1.0))
    monkeypatch.setattr(attractor_use, "INERTIAS", (0.0, 1.0))
    monkeypatch.setattr(attractor_use, "STEPS", 2)
    monkeypatch.setattr(attractor_use, "PATCHES", (2,))


def crossed(count: int) -> torch.Tensor:
    """8 x 8 pictures of one bright row and one bright column, with some haze."""
    generator = torch.Generator().manual_seed(count)
    pictures = 0.1 * torch.rand(count, 1, 8, 8, generator=generator)
    for picture, (row, column) in zip(pictures, torch.randint(8, (count, 2), generator=generator), strict=True):
        picture[0, row], picture[0, :, column] = 0.9, 0.9
    return pictures


def test_knobs_are_chosen_on_held_out_images_and_judged_on_test_ones(small):
    outcome = attractor_use.run(crossed(96), crossed(32), crossed(33), seeds=2, epochs=1)
    assert set(outcome["settings"]) == {"paper-2", "field-2"}
    assert set(outcome["trivial"]) == {"masked-2", "noisy-2"}
    for key, runs in outcome["settings"].items():
        assert len(runs) == 2
        for run in runs:
            for task in ("masked", "noisy"):
                chosen = run[task]
                assert chosen["strength"] in (0.5, 1.0)
                assert chosen["inertia"] in (0.0, 1.0)
                assert 1 <= chosen["step"] <= 2
                assert 0 < chosen["error"] < 1
        row = outcome["table"][key]
        assert row["masked"] == pytest.approx(sum(r["masked"]["error"] for r in runs) / 2)
        assert row["best_trivial"]["masked"] == min(outcome["trivial"]["masked-2"].values())
        assert row["beats_trivial_masked"] == all(r["masked"]["error"] < row["best_trivial"]["masked"] for r in runs)
        assert row["noisy_within_bar"] == all(r["noisy"]["error"] <= 0.6 * r["noisy"]["corrupted"] for r in runs)
    best = outcome["table"]["field-2"]
    assert outcome["passed"] == (best["beats_trivial_masked"] and best["noisy_within_bar"])
    record = {"outcome": outcome}
    assert tables.use(record).count("\n") == 3
    assert tables.knobs(record).count("\n") == 3
    assert "visible neighbours" in tables.trivial(record)


def test_the_field_setting_learns_and_its_attention_is_nearly_uniform():
    digits = data.load_images("sample").train[:800]
    config, recipe = preset("field", patch=4)
    network = AttractorNetwork(config)
    history = train_attractor(network, digits, recipe, quiet=True)
    assert history[-1]["loss"] < history[0]["loss"]
    n = network.layer.n_tokens
    attention = network.layer.attention(network.spins(digits[:50]))[:, ~torch.eye(n, dtype=torch.bool)]
    assert ((n - 1) * attention - 1).abs().max() < 0.1
