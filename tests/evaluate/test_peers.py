"""shapiq's estimators on exact tables: exact where they ask for everything, counted as shapiq counts, seeded."""

import random

import numpy as np
import pytest
import torch

pytest.importorskip("shapiq")

from spinformer.evaluate.explanations import peers
from spinformer.evaluate.explanations.peers import PEERS, Peer, TableLookup, measure_peers
from spinformer.evaluate.explanations.tables import ExactTable

FAST = [name for name in PEERS if name not in ("SPEX", "ProxySPEX")]


def table(words=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    bits = (torch.arange(2**words)[:, None] >> torch.arange(words) & 1).double()
    weights, pairs = torch.randn(words, generator=generator), torch.randn(words, words, generator=generator)
    inside = bits @ weights.double() + ((bits @ pairs.double()) * bits).sum(1)
    values = inside.sigmoid().float()
    return ExactTable(f"key {seed}", tuple("abcdefgh"[:words]), 0, (float(values[-1]), 1 - float(values[-1])), values)


TABLES = [table(6, 0), table(5, 1), table(6, 2)]


def rows_of(*args, **options):
    rows, absent = measure_peers(*args, progress=False, **options)
    return {row.name: row.to_dict() for row in rows}, absent


def test_all_coalitions_give_exact_values():
    rows, _ = rows_of([table(6, 0), table(6, 2)], [64], ["KernelSHAP", "KernelSHAP paired", "KernelSHAPIQ", "SHAPIQ"])
    for row in rows.values():
        assert row["values"]["error"]["mean"] < 1e-5, row
        assert row["passes"]["mean"] == 64
    for name in ("KernelSHAPIQ 64", "SHAPIQ 64"):
        assert rows[name]["pairs"]["index"] == "SII"
        assert rows[name]["pairs"]["error"]["mean"] < 1e-4
    assert rows["KernelSHAP 64"]["pairs"] is None


def test_a_budget_counts_as_shapiq_counts(monkeypatch):
    asked = []
    original = TableLookup.__call__

    def lookup(self, coalitions):
        asked.append(np.atleast_2d(coalitions).astype(int))
        return original(self, coalitions)

    monkeypatch.setattr(TableLookup, "__call__", lookup)
    rows, _ = rows_of([table(6)], [20], ["KernelSHAP"])
    coalitions = np.concatenate(asked)
    assert len(coalitions) == rows["KernelSHAP 20"]["passes"]["mean"] == 20
    assert len(np.unique(coalitions, axis=0)) == 20  # no coalition twice, and both ends among them
    assert {0, 6} <= set(coalitions.sum(1).tolist())


def test_every_peer_runs_or_says_why():
    rows, absent = rows_of(TABLES, [20, 40], FAST)
    assert not absent
    for row in rows.values():
        assert row["values"] is not None, row
        few = row["budget"] > 32
        assert row["values"]["error"]["count"] == 3 - few
        assert row["passes"]["mean"] <= row["budget"]
        if few:
            reason = "a text of 5 words has 32 coalitions; got a budget of 40"
            assert row["left_out"] == {"count": 1, "reason": reason}
    better = [rows[f"KernelSHAP paired {budget}"]["values"]["error"]["mean"] for budget in (20, 40)]
    assert better[1] < better[0]


def state():
    """Of the global generators."""
    return random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002


def test_seeds_and_global_state():
    before = state()
    first, _ = rows_of(TABLES, [20], ["KernelSHAP", "PermutationSamplingSII", "SVARMIQ"])
    assert state() == before
    again, _ = rows_of(TABLES, [20], ["KernelSHAP", "PermutationSamplingSII", "SVARMIQ"])
    other, _ = rows_of(TABLES, [20], ["KernelSHAP", "PermutationSamplingSII", "SVARMIQ"], seed=1)
    assert first == again != other
    alone, _ = rows_of(TABLES[1:2], [20], ["KernelSHAP"])
    three, _ = measure_peers(TABLES, [20], ["KernelSHAP"], progress=False)
    assert alone["KernelSHAP 20"]["values"]["error"]["mean"] == three[0].words[1].error  # whatever the other texts


def test_slow_and_failing_and_absent_peers(monkeypatch):
    class Broken:
        def __init__(self, **options):
            pass

        def approximate(self, budget, game):
            raise ValueError("Insufficient budget")

    import shapiq.approximator

    monkeypatch.setattr(shapiq.approximator, "Broken", Broken, raising=False)

    own = {
        "slow": Peer("slow", "KernelSHAP", texts=2),
        "broken": Peer("broken", "Broken"),
        "needy": Peer("needy", "KernelSHAP", needs="no_such_package"),
    }
    monkeypatch.setattr(peers, "PEERS", own)
    rows, absent = rows_of(TABLES, [20])
    assert absent == {"needy": "it needs the package no_such_package, which is not installed"}
    assert list(rows) == ["slow 20", "broken 20"]
    assert rows["slow 20"]["values"]["error"]["count"] == 2
    assert rows["broken 20"]["left_out"] == {"count": 3, "reason": "Insufficient budget"}
    assert rows["broken 20"]["values"] is None
    assert peers.forecast_seconds(10) == pytest.approx(0.25 * 2 + 0.25 * 10)


def test_what_is_refused():
    for args, message in (
        (([],), "expected tables, and budgets that differ; got 0"),
        ((TABLES, [20, 20]), r"budgets that differ; got 3 and \[20, 20\]"),
        ((TABLES, [1]), "budgets must be an integer of at least 2; got 1"),
        ((TABLES, [20], ["magic"]), "peers must be one of 'KernelSHAP'"),
    ):
        with pytest.raises(ValueError, match=message):
            measure_peers(*args)


def test_shapiq_is_named_where_it_is_absent(monkeypatch):
    import importlib

    def absent(name, *rest):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ModuleNotFoundError, match=r"spinformer\[compare\]"):
        measure_peers(TABLES)
