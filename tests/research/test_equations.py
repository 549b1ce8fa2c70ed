"""The benchmarks `equations` and `theory`: they agree with the library, and would say so if they did not."""

import pytest
import torch

from research.benchmarks import (
    equations,
    equations_attractor,
    equations_games,
    equations_layer,
    theory_attractor,
    theory_games,
    theory_spins,
)
from research.paths import RESULTS
from spinformer._base import records


def test_every_equation_agrees_with_the_library():
    outcome = equations.run()
    assert outcome["passed"], outcome["differences"]
    assert set(outcome["differences"]) == set(records.read("equations", RESULTS)["outcome"]["differences"])
    assert outcome["eq_34_total"] == pytest.approx(5)


def off(function):
    """The same with another number."""
    return lambda *args, **options: function(*args, **options) + 1e-3


@pytest.mark.parametrize(
    ("module", "name", "number"),
    [
        (equations_games, "exact_values", "4"),
        (equations_games, "exact_values", "9"),
        (equations_games, "exact_values", "31"),
        (equations_layer, "exact_magnetization", "15"),
        (equations_layer, "exact_magnetization", "14"),
    ],
)
def test_a_library_that_is_wrong_is_seen(module, name, number, monkeypatch):
    monkeypatch.setattr(module, name, off(getattr(module, name)))
    assert module.EQUATIONS[number]() > equations.TOLERANCE


def test_wrong_couplings_are_seen(monkeypatch):
    monkeypatch.setattr(equations_attractor, "plain_energy", off(equations_attractor.plain_energy))
    assert equations_attractor.EQUATIONS["4"]() > equations.TOLERANCE
    monkeypatch.setattr(equations_attractor, "plain_step", lambda x: x)
    assert equations_attractor.EQUATIONS["1"]() > equations.TOLERANCE


def test_statements_that_follow_from_the_definitions():
    bias = theory_games.bias()
    assert bias["shapley"] == pytest.approx(0.766667, abs=1e-5)  # as in the worked example
    assert bias["shapley"] < bias["expected"] < bias["gibbs"]
    assert theory_games.evaluations()["counts"]["8"] == {"fields": 2 * 8 * 3 * 2, "couplings": 28 * 3 * 4}
    orders = theory_games.orders()
    assert orders["single"] + orders["pairs"] + orders["more"] == pytest.approx(1)
    assert theory_spins.temperatures() == records.read("theory", RESULTS)["outcome"]["temperatures"]
    correlation = theory_spins.independence()["through a third"]
    assert correlation == pytest.approx(float(torch.tanh(torch.tensor(1.0, dtype=torch.float64))) ** 2)
    assert theory_attractor.energies()["100"] < theory_attractor.energies()["1"]
