"""`bench attention`: every path is measured, and peers ask the game that the layer plays; the tables of it."""

import pytest
import torch

from research.benchmarks import attention, attention_classifiers, attention_peers
from research.reports import attention as report
from spinformer.games import NormGame


@pytest.fixture
def small(monkeypatch):
    sizes = {"DIM": 24, "SIZES": {"cpu": ((6, 2), (8, 1))}, "REPEATS": 1, "SHAPES": {"cpu": ((4, 2),)}}
    sizes |= {"PEER_TOKENS": 12, "PART_TOKENS": 1, "PART_PAIRS": 1}
    for name, value in sizes.items():
        monkeypatch.setattr(attention, name, value)
    for name, value in {"TRAININGS": {"cpu": 1}, "INFERENCES": {"cpu": 1}, "POOLING": ("cls", "neurogame")}.items():
        monkeypatch.setattr(attention_classifiers, name, value)


def test_every_path_has_a_row_and_a_stopped_run_goes_on(small, monkeypatch, tmp_path):
    with monkeypatch.context() as stopped:
        stopped.setattr(attention, "classifier_rows", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            attention.run(0, tmp_path)
    with monkeypatch.context() as again:
        again.setattr(attention, "_of_length", lambda *_: pytest.fail("all lengths were measured"))
        found = attention.run(0, tmp_path)
    assert found["passed"]
    assert [row["name"] for row in found["rows"] if row["tokens"] == 6] == [
        "softmax attention",
        "nn.MultiheadAttention",
        *("default, 1 head", "default, 12 heads", "paper, 1 head", "paper, 12 heads"),
    ]
    assert [row["head"] for row in found["classifiers"]] == ["cls", "neurogame"]
    assert [row["name"].split()[0] for row in found["peers"]] == ["spinformer", "shapiq", "captum"]
    assert all(row["seconds"] > 0 for row in (*found["rows"], *found["peers"]))
    tables = {name: getattr(report, name)({"outcome": found}).splitlines() for name in ("times", "nearness", "peers")}
    assert tables["times"][0] == "| tokens × texts | 6 × 2 | 8 × 1 |"
    assert [len(lines) for lines in tables.values()] == [2 + 6, 2 + 4, 2 + 4]
    assert "(1.00 ×)" in report.classifiers({"outcome": found}).splitlines()[2]
    assert len(report.figure({"outcome": found}).axes) == 1  # memory is counted on a GPU alone


def test_the_longest_text_is_measured(small, monkeypatch):
    monkeypatch.setattr(attention, "LONGEST", 300)
    row = attention._longest(0, torch.device("cpu"))
    assert (row["name"], row["tokens"], row["batch"], row["matches"]) == ("default, 12 heads", 300, 1, True)


def test_a_path_that_differs_from_its_twin_has_no_time(monkeypatch):
    monkeypatch.setattr(attention, "DIM", 8)
    monkeypatch.setattr(attention, "_difference", lambda step, exact: (1.0, None))
    row = attention._ours(torch.randn(2, 5, 8), "default", 1, 0, "eager")
    assert row["seconds"] is None
    assert not row["matches"]


def test_a_path_that_does_not_run_costs_its_own_row(monkeypatch):
    monkeypatch.setattr(attention, "_timed", lambda *_: torch.zeros(2) @ torch.zeros(3))
    row = attention._ours(torch.randn(2, 5, 8), "default", 1, 0, "replayed")
    assert (row["name"], row["seconds"], row["matches"]) == ("default, 1 head, replayed", None, False)
    assert "size" in row["error"]
    softmax = {"name": report.SOFTMAX, "tokens": 5, "batch": 2, "seconds": 1.0, "bytes": None}
    assert "failed" in report.times({"outcome": {"rows": [softmax, row]}})


def test_the_quickest_way_is_drawn():
    rows = [
        {"name": name, "tokens": tokens, "seconds": seconds}
        for name, tokens, seconds in [("a", 1, 3.0), ("a, replayed", 1, 2.0), ("a, replayed", 2, None), ("b", 1, 1.0)]
    ]
    assert report.quickest(rows, "a") == {1: rows[1]}


def test_peers_ask_the_game_of_the_layer():
    values = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    coalitions = torch.rand(7, 5, generator=torch.Generator().manual_seed(1)) < 0.5
    expected = NormGame(values[None])(coalitions[None])[0]
    torch.testing.assert_close(attention_peers.norms(values, coalitions), expected)
