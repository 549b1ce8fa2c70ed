"""The search over settings of the bare layer: one row for each, the best of its λ and γ, whoever computes it."""

from functools import partial
from typing import Any

import pytest
import torch

from research.experiments import attractor_sweep
from research.reports.reproduction.judges.network import best_strengths

PAPER = [case for case in attractor_sweep.grid() if case[0] == "paper" and case[1]["normalisation"] == "sphere"]


@pytest.fixture
def few(monkeypatch):
    """Three settings of the paper's objective on tiny images, run here by however many are asked for."""
    monkeypatch.setattr(attractor_sweep, "grid", lambda: iter(PAPER[:3]))
    monkeypatch.setattr(attractor_sweep, "INERTIAS", (0.0, 0.5))
    monkeypatch.setattr(attractor_sweep, "STEPS", 2)

    def backwards(function: Any, tasks: list[Any], processes: int) -> Any:
        return reversed([(index, partial(function, *task)) for index, task in enumerate(tasks)])

    monkeypatch.setattr(attractor_sweep, "run_tasks", backwards)
    return torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def test_rows_are_in_the_order_of_the_grid(few):
    rows = attractor_sweep.run(few[:16], few[16:], epochs=1)
    assert [row["changes"] for row in rows] == [{**network, **recipe} for _, network, recipe in PAPER[:3]]
    assert attractor_sweep.run(few[:16], few[16:], epochs=1, processes=2) == rows
    assert attractor_sweep.run(few[:16], few[16:], epochs=1, limit=1, processes=2) == rows[:1]


def test_the_papers_strengths_can_be_the_best_in_testing(few):
    tried = attractor_sweep.STRENGTHS["paper"]
    assert {1.0, 5.0} <= set(tried)
    rows = attractor_sweep.run(few[:16], few[16:], epochs=1)
    assert all(row[task]["strength"] in tried for row in rows for task in ("masked", "masked_pinned", "noisy"))
    assert "Best λ in training and in testing" in best_strengths({"rows": rows}).text
