"""The bare layer put to use: λ, γ and steps are chosen on held-out images, and judged on test ones."""

import pytest
import torch

from research.experiments import attractor_measures as measures
from research.experiments import attractor_use
from spinformer.data import images as data
from spinformer.data.corruption import corrupt
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.train import train_attractor


def test_knobs_are_chosen_on_held_out_images(monkeypatch):
    monkeypatch.setattr(attractor_use, "STRENGTHS", (0.5, 1.0))
    monkeypatch.setattr(attractor_use, "INERTIAS", (0.0, 1.0))
    monkeypatch.setattr(attractor_use, "STEPS", 2)
    digits = data.load_images("sample").train[:100]
    network = AttractorNetwork(AttractorConfig(patch=7, strength=0.9, inertia=0.7))
    chosen = attractor_use.tuned(network, digits[:40], digits[40:])
    assert (network.layer.strength, network.layer.inertia) == (0.9, 0.7)
    for task in ("masked", "noisy"):
        least = []
        for strength in (0.5, 1.0):
            for inertia in (0.0, 1.0):
                network.layer.strength, network.layer.inertia = strength, inertia
                curve = measures.errors(network, digits[:40], task, 2)["error"]
                least += [(error, strength, inertia, step) for step, error in enumerate(curve, start=1)]
        best = min(least)
        row = chosen[task]
        assert (row["held_out"], row["strength"], row["inertia"], row["step"]) == best
        network.layer.strength, network.layer.inertia = best[1], best[2]
        assert row["error"] == measures.errors(network, digits[40:], task, 2)["error"][best[3] - 1]


def test_masked_errors_are_over_the_hidden_pixels_and_over_all():
    digits = data.load_images("sample").train[:8]
    network = AttractorNetwork(AttractorConfig(patch=7))
    record = measures.errors(network, digits, "masked", 2)
    corrupted = corrupt(digits, "masked", network.embedding, generator=torch.Generator().manual_seed(0))
    states = measures.restored(network, corrupted, 2)
    for t, state in enumerate(states):
        hidden, every = [], []
        for k in range(len(digits)):
            square = (state[k] - digits[k]).square()
            hidden.append(float(square[corrupted.judged[k]].mean()))
            every.append(float(square.mean()))
        assert record["error"][t] == pytest.approx(sum(hidden) / 8, rel=1e-5)
        assert record["all_pixels"][t] == pytest.approx(sum(every) / 8, rel=1e-5)
    assert "all_pixels" not in measures.errors(network, digits, "noisy", 1)


def test_the_table_has_the_mean_and_the_range_over_seeds():
    runs = [
        {
            "masked": {"error": masked, "strength": 1.0, "inertia": 0.0, "step": 1},
            "noisy": {"error": noisy, "corrupted": 0.1, "strength": 1.0, "inertia": 0.0, "step": 2},
        }
        for masked, noisy in ((0.02, 0.05), (0.04, 0.06))
    ]
    trivial = {"masked-2": {"zero": 0.1, "visible neighbours": 0.05}, "noisy-2": {"zero": 0.1, "3 x 3 average": 0.055}}
    outcome = attractor_use.together({"field-2": runs}, trivial)
    row = outcome["table"]["field-2"]
    assert row["masked"] == pytest.approx(0.03)
    assert row["masked_spread"] == pytest.approx(0.02)
    assert row["noisy_ratio"] == pytest.approx(0.55)
    assert row["best_trivial"] == {"masked": 0.05, "noisy": 0.055}
    assert row["beats_trivial_masked"]  # both seeds are below 0.05
    assert not row["beats_trivial_noisy"]  # one seed is above 0.055
    assert row["noisy_within_bar"]  # 0.06 is 60% of 0.1
    assert outcome["passed"]
    runs[1]["noisy"]["error"] = 0.061
    assert not attractor_use.together({"field-2": runs}, trivial)["passed"]


def test_the_field_setting_learns_and_its_attention_is_nearly_uniform():
    digits = data.load_images("sample").train[:200]
    config, recipe = preset("field", patch=4)
    network = AttractorNetwork(config)
    history = train_attractor(network, digits, recipe, quiet=True)
    assert history[-1]["loss"] < history[0]["loss"]
    n = network.layer.n_tokens
    attention = network.layer.attention(network.spins(digits[:50]))[:, ~torch.eye(n, dtype=torch.bool)]
    assert ((n - 1) * attention - 1).abs().max() < 0.1
