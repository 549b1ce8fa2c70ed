"""`bench attention`: every path is measured, and peers ask the game that the layer plays."""

import torch

from research.benchmarks import attention, attention_peers
from spinformer.games import NormGame


def test_every_path_has_a_row(monkeypatch):
    small = {"DIM": 24, "SIZES": {"cpu": ((6, 2),)}, "REPEATS": 1, "SHAPES": {"cpu": ((4, 2),)}, "PEER_TOKENS": 12}
    for name, value in (small | {"PART_TOKENS": 1, "PART_PAIRS": 1, "POOLING": ("cls", "neurogame")}).items():
        monkeypatch.setattr(attention, name, value)
    found = attention.run(0)
    assert found["passed"]
    assert [row["name"] for row in found["rows"]] == [
        "softmax attention",
        "nn.MultiheadAttention",
        *("default, 1 head", "default, 12 heads", "paper, 1 head", "paper, 12 heads"),
    ]
    assert [row["head"] for row in found["classifiers"]] == ["cls", "neurogame"]
    assert [row["name"].split()[0] for row in found["peers"]] == ["spinformer", "shapiq", "captum"]
    assert all(row["seconds"] > 0 for row in (*found["rows"], *found["peers"]))


def test_a_path_that_differs_from_its_twin_has_no_time(monkeypatch):
    monkeypatch.setattr(attention, "DIM", 8)
    monkeypatch.setattr(attention, "_difference", lambda step: 1.0)
    row = attention._ours(torch.randn(2, 5, 8), "default", 1, 0, "eager")
    assert row["seconds"] is None
    assert not row["matches"]


def test_peers_ask_the_game_of_the_layer():
    values = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    coalitions = torch.rand(7, 5, generator=torch.Generator().manual_seed(1)) < 0.5
    expected = NormGame(values[None])(coalitions[None])[0]
    torch.testing.assert_close(attention_peers.norms(values, coalitions), expected)
