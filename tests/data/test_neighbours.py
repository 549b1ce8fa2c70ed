"""What is near in meaning, by hand."""

import pytest
import torch

from spinformer.data.neighbours import nearest, nearest_seconds, nearest_words


def turned(*angles):
    found = torch.tensor(angles)
    return torch.stack([found.cos(), found.sin()], 1)


def test_nearest_by_hand(monkeypatch):
    queries, keys = turned(0.0, 1.0, 2.9), turned(3.0, 0.2, 1.1) * torch.tensor([[9.0], [0.1], [3.0]])
    wanted = [[1, 2], [2, 1], [0, 2]]
    assert nearest(queries, keys, 2).tolist() == wanted
    monkeypatch.setattr("spinformer.data.neighbours.BLOCK", 2)
    assert nearest(queries, keys, 2).tolist() == wanted
    with pytest.raises(ValueError, match="count must be at most 3, the number of keys; got 4"):
        nearest(queries, keys, 4)


def test_nearest_words_by_hand():
    vectors = turned(0.0, 0.1, 1.0, 1.05, 3.0) * torch.tensor([1, 5, 2, 1, 1])[:, None]
    found = nearest_words(["a", "b", "c", "d", "e"], vectors, 2)
    assert found == {"a": ("b", "c"), "b": ("a", "c"), "c": ("d", "b"), "d": ("c", "b"), "e": ("d", "c")}
    assert nearest_words(["a", "b"], vectors[:2], 2) == {}


def test_second_texts_of_other_pairs(monkeypatch):
    first, second = ["p", "q", "p"], ["p1", "q1", "p2"]
    vectors = {"first": turned(0.0, 1.0), "second": turned(0.1, 0.9, 0.3)}
    assert nearest_seconds(first, second, vectors, 1) == {"p": ("q1",), "q": ("p2",)}
    assert nearest_seconds(first, second, vectors, 2) == {}  # too few to leave each its own out
    monkeypatch.setattr("spinformer.data.neighbours.MAX_SKIPPED", 1)
    assert nearest_seconds(first, second, vectors, 1) == {"q": ("p2",)}  # the two nearest to p are its own
    assert nearest_seconds(["p", "p"], ["a", "a"], {"first": turned(0.0), "second": turned(0.0)}, 1) == {}
