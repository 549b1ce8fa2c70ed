"""λ, γ and steps chosen on held-out images; trajectories that stop where states grow."""

import json

import pytest
import torch

from spinformer.cli import main
from spinformer.data import images as data
from spinformer.data.corruption import corrupt
from spinformer.evaluate.images import dynamics, trajectory
from spinformer.models.attractor import AttractorConfig, AttractorNetwork, Dynamics
from spinformer.training.attractor import preset, train_attractor


@pytest.fixture(scope="module")
def digits() -> torch.Tensor:
    return data.load_images("sample").train


@pytest.fixture(scope="module")
def network(digits) -> AttractorNetwork:
    config, recipe = preset("field", patch=4)
    net = AttractorNetwork(config)
    train_attractor(net, digits[:640], type(recipe)(**{**vars(recipe), "epochs": 4}), quiet=True)
    return net


@pytest.mark.parametrize("task", ["masked", "noisy"])
def test_the_least_error_of_what_is_stable_is_chosen(task, network, digits, monkeypatch):
    monkeypatch.setattr(dynamics, "STRENGTHS", (0.3, 1.0))
    monkeypatch.setattr(dynamics, "INERTIAS", (0.0, 0.5, 1.0))
    held_out, before = digits[-40:], (network.layer.strength, network.layer.inertia)
    chosen = dynamics.choose_dynamics(network, held_out, task, quiet=True)
    assert (network.layer.strength, network.layer.inertia) == before
    corrupted = corrupt(held_out, task, network.embedding, generator=torch.Generator().manual_seed(0))
    network.use(chosen)
    try:
        path = trajectory.follow(network, corrupted, dynamics.STEPS, pin=chosen.pin)
    finally:
        network.layer.strength, network.layer.inertia = before
    assert path.grown is None
    assert path.best == chosen.steps
    assert path.errors[chosen.steps] == pytest.approx(chosen.error, rel=1e-5)
    assert path.errors[-1] <= dynamics.RISE * chosen.error
    start = corrupted.error(corrupted.given.clamp(0, 1))
    assert chosen.error < 0.7 * start
    if task == "noisy":
        assert not chosen.pin


def test_a_run_whose_states_grow_stops(network, digits):
    corrupted = corrupt(digits[-8:], "masked", network.embedding, generator=torch.Generator().manual_seed(0))
    network.layer.strength, network.layer.inertia = 3.0, 1.0
    try:
        path = trajectory.follow(network, corrupted, 40)
    finally:
        network.layer.strength, network.layer.inertia = 1.0, 0.0
    assert path.grown is not None
    assert len(path.images) == len(path.energies) == len(path.errors) == path.grown
    assert bool(path.energies.isfinite().all())


def test_dynamics_are_saved_with_the_network(tmp_path):
    net = AttractorNetwork(AttractorConfig(patch=7))
    net.dynamics["masked"] = Dynamics(0.6, 0.25, 3, pin=True, error=0.03)
    net.save(tmp_path / "net.safetensors")
    assert AttractorNetwork.load(tmp_path / "net.safetensors").dynamics == net.dynamics
    del net.dynamics["masked"]
    net.save(tmp_path / "net.safetensors")
    assert AttractorNetwork.load(tmp_path / "net.safetensors").dynamics == {}


@pytest.mark.slow
def test_what_a_user_gets_without_options(tmp_path, capsys, monkeypatch):
    """`train attractor`, then `retrieve`: it stops by itself, and the last picture is the best."""
    monkeypatch.setattr(dynamics, "STRENGTHS", (0.6, 1.0))
    monkeypatch.setattr(dynamics, "INERTIAS", (0.0, 0.25))
    net, folder = tmp_path / "net.safetensors", tmp_path / "out"
    train = ["train", "attractor", "--patch", "4", "--limit", "800", "--epochs", "4", "--output", str(net)]
    assert main(train) == 0
    assert "masked: held-out error 0.0" in capsys.readouterr().out
    for task in ("masked", "noisy"):
        assert main(["retrieve", str(net), "--task", task, "--count", "50", "--output", str(folder)]) == 0
        printed = capsys.readouterr().out
        assert "chosen on held-out images: λ" in printed
        assert "without bound" not in printed
        errors = json.loads((folder / "energies.json").read_text())["error"]
        assert errors[-1] <= 1.05 * min(errors)
        assert errors[-1] < 0.7 * errors[0]
    steps = ["--strength", "3", "--inertia", "1", "--steps", "30"]
    assert main(["retrieve", str(net), "--count", "4", "--output", str(folder), *steps]) == 0
    assert "states grow without bound with this λ and γ" in capsys.readouterr().out
