"""λ, γ and steps chosen on held-out images; trajectories that stop where states grow."""

import json

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d

from spinformer.cli import main
from spinformer.data import images as data
from spinformer.data.corruption import corrupt
from spinformer.evaluate.images import dynamics, trajectory
from spinformer.models.attractor import AttractorConfig, AttractorNetwork, Dynamics
from spinformer.training.attractor import preset, train_attractor


@pytest.fixture(scope="module")
def digits() -> torch.Tensor:
    """At half their size, 14 x 14."""
    return avg_pool2d(data.load_images("sample").train[:900], 2)


@pytest.fixture(scope="module")
def network(digits) -> AttractorNetwork:
    config, recipe = preset("field", image=(1, 14, 14))
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


def test_what_a_user_gets_without_options(tmp_path, capsys, monkeypatch, digits):
    """`train attractor`, then `retrieve`: it stops by itself, and the last picture is the best."""
    monkeypatch.setattr(dynamics, "STRENGTHS", (0.6, 1.0))
    monkeypatch.setattr(dynamics, "INERTIAS", (0.0, 0.25))
    pixels = (255 * digits[:, 0]).round().byte().numpy()
    np.savez(tmp_path / "digits.npz", train=pixels[:800], test=pixels[800:])
    net, folder, images = tmp_path / "net.safetensors", tmp_path / "out", ["--images", str(tmp_path / "digits.npz")]
    assert main(["train", "attractor", *images, "--epochs", "4", "--output", str(net)]) == 0
    assert "masked: held-out error 0.0" in capsys.readouterr().out
    for task in ("masked", "noisy"):
        assert main(["retrieve", str(net), *images, "--task", task, "--count", "50", "--output", str(folder)]) == 0
        printed = capsys.readouterr().out
        assert "chosen on held-out images: λ" in printed
        assert "without bound" not in printed
        errors = json.loads((folder / "energies.json").read_text())["error"]
        assert errors[-1] <= 1.05 * min(errors)
        assert errors[-1] < 0.7 * errors[0]
    steps = ["--strength", "3", "--inertia", "1", "--steps", "30"]
    assert main(["retrieve", str(net), *images, "--count", "4", "--output", str(folder), *steps]) == 0
    assert "states grow without bound with this λ and γ" in capsys.readouterr().out
