"""Gradients of the layer against central differences: every preset, on texts that converge and texts that do not."""

import pytest
import torch

from spinformer.attention import PRESETS, NeuroGameAttention
from spinformer.games import NormGame
from tests.ising.differences import STEPS, relative_errors

DIM, TOKENS = 8, 16
# Preset, options, and which texts converge: all, some or none.
CASES = {
    "paper": ("paper", {}, "some"),
    "paper, high temperature": ("paper", {"temperature": 30.0}, "all"),
    "paper, few steps": ("paper", {"max_steps": 4}, "none"),
    "paper, implicit": ("paper", {"backward": "implicit"}, "some"),
    "default": ("default", {}, "all"),
    "default, few steps": ("default", {"max_steps": 2}, "none"),
    "default, linear": ("default", {"couplings": "linear"}, "all"),
    "default, linear, few steps": ("default", {"couplings": "linear", "max_steps": 2}, "none"),
    "default, damped": ("default", {"solver": "damped", "max_steps": 3}, "none"),
    "default, sequential": ("default", {"solver": "sequential", "max_steps": 1}, "none"),
    "default, TAP": ("default", {"correction": "tap", "max_steps": 2}, "none"),
}


def test_presets_are_all_here():
    assert {preset for preset, *_ in CASES.values()} == set(PRESETS)
    assert PRESETS["paper"].backward == "unrolled"


@pytest.fixture
def _same_coalitions(monkeypatch):
    """Coalitions are drawn for players in the order of their products with the sum of all, which two close players
    swap at a finite distance: here in the order in which they come.
    """
    monkeypatch.setattr(NormGame, "order", lambda game: torch.arange(game.players).expand(game.batch, -1))


@pytest.mark.usefixtures("_same_coalitions")
@pytest.mark.parametrize(
    ("case", "training"),
    [*((case, True) for case in CASES), *((case, False) for case in ("paper", "default", "default, linear"))],
)
def test_finite_differences(case, training):
    """Each text to 1%, with respect to its tokens and to every weight, with the same coalitions on both sides."""
    preset, options, which = CASES[case]
    torch.manual_seed(1)
    module = NeuroGameAttention(DIM, 2, preset=preset, samples=6, eval_samples=6, **options).double().train(training)
    if preset == "default":
        torch.nn.init.constant_(module.coupling_logit, 3.0)  # couplings close to the critical strength
    x = torch.randn(4, TOKENS, DIM, dtype=torch.float64) * torch.tensor([0.2, 1.0, 3.0, 0.4])[:, None, None]
    x.requires_grad_()
    mask = torch.arange(TOKENS) < TOKENS - torch.tensor([[0], [1], [2], [0]])
    weights, shares = torch.randn(DIM).double(), torch.randn(2, TOKENS).double()

    def run():
        return module(x, mask, torch.Generator().manual_seed(7))

    def losses():
        output = run()
        return torch.cat([output.pooled @ weights, (output.attention * shares).sum((1, 2))])

    converged = run().diagnostics.converged.all(1)  # both attention heads
    assert which == ("all" if converged.all() else "some" if converged.any() else "none")
    leaves = [x, *(parameter for parameter in module.parameters() if parameter.requires_grad)]
    for step in STEPS:
        errors = relative_errors(losses, leaves, step)
        assert float(errors.max()) < 0.01
