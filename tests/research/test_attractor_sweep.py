"""Searches over settings of the bare layer: a row for each, whoever computes it; and the paper's λ can be the best."""

from functools import partial
from typing import Any

import pytest
import torch

from research.experiments import attractor_strengths, attractor_sweep
from research.reports.attractor import strengths
from research.reports.reproduction.judges.network import best_strengths

SETTINGS = list(attractor_sweep.grid())[:3]


def backwards(function: Any, tasks: list[Any], processes: int) -> Any:
    """In place of processes: the last task ends first."""
    return reversed([(index, partial(function, *task)) for index, task in enumerate(tasks)])


@pytest.fixture
def digits(monkeypatch):
    """Tiny images, and few settings."""
    monkeypatch.setattr(attractor_sweep, "grid", lambda: iter(SETTINGS))
    monkeypatch.setattr(attractor_sweep, "INERTIAS", (0.0, 0.5))
    monkeypatch.setattr(attractor_sweep, "STEPS", 2)
    monkeypatch.setattr(attractor_strengths, "STEPS", 3)
    for module in (attractor_sweep, attractor_strengths):
        monkeypatch.setattr(module, "run_tasks", backwards)
    return torch.rand(24, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def test_rows_are_in_the_order_of_the_grid(digits):
    rows = attractor_sweep.run(digits[:16], digits[16:], epochs=1)
    assert [row["changes"] for row in rows] == [{**network, **recipe} for _, network, recipe in SETTINGS]
    assert attractor_sweep.run(digits[:16], digits[16:], epochs=1, processes=2) == rows
    assert attractor_sweep.run(digits[:16], digits[16:], epochs=1, limit=1, processes=2) == rows[:1]


def test_every_strength_of_training_with_every_one_of_testing(digits):
    rows = attractor_strengths.run(digits[:16], digits[16:], epochs=1, device="cpu", processes=2)
    tried = {(row["hold"], row["trained"], row["tested"]) for row in rows}
    assert len(tried) == len(rows) == 2 * 3 * 4
    assert {("pair", 5.0, 1.0), ("site", 5.0, 1.0)} <= tried
    assert all(0 <= row[task]["step"] <= 3 for row in rows for task in ("masked", "noisy"))
    table = strengths({"outcome": {"rows": rows, "train": 16}})
    assert table.count('\n| `hold="pair"` |') == 12
    assert all(f"**{min(row['noisy']['best'] for row in rows if row['hold'] == hold):.4f}**" in table
               for hold in ("site", "pair"))  # fmt: skip
    assert "1 epochs on 16 digits" in table


def strength_rows(hold: str, **errors: dict[tuple[float, float], float]) -> list[dict[str, Any]]:
    """Errors of 0.2, but 0.1 for 5 and 1; errors: others, by task."""
    return [
        {
            "hold": hold, "trained": trained, "tested": tested, "epochs": 20,
            **{
                task: {"best": {(5.0, 1.0): 0.1, **errors.get(task, {})}.get((trained, tested), 0.2), "step": 1}
                for task in ("masked", "noisy")
            },
        }
        for trained in (1.0, 5.0) for tested in (1.0, 5.0)
    ]  # fmt: skip


def test_the_verdict():
    def found(site, pair):
        return best_strengths({"rows": [*strength_rows("site", **site), *strength_rows("pair", **pair)], "train": 50})

    better = {(1.0, 5.0): 0.05}
    assert found({}, {}).verdict == "holds"
    assert found({}, {"noisy": {(1.0, 5.0): 0.1 + 1e-6}}).verdict == "holds"  # tied
    one = found({}, {"masked": better, "noisy": better})  # with the norm of each site alone
    assert one.verdict == "holds with conditions"
    assert "masked 1 and 5 (the largest tried; error 0.0500; 5 and 1 have 0.1000, 100.0% more)" in one.text
    assert "norm of each site held: masked 5 and 1 (error 0.1000), noisy 5 and 1" in one.text
    both = {"masked": better, "noisy": {(1.0, 1.0): 0.05, (1.0, 5.0): 0.05}}
    assert found(both, both).verdict == "does not hold"
    assert "noisy 1 and any (error 0.0500" in found(both, both).text
