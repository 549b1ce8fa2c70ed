"""What `ground` says beforehand."""

from dataclasses import replace

import pytest
import torch

from spinformer.models.masked import MaskedClassifier
from spinformer.training import game_time
from spinformer.training.game import GroundingOptions, train_game_head
from tests.tiny import nli_classifier, tokenizer
from tests.training.test_ground import SMALL, texts


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, "1 s"), (0.012, "13 s"), (0.3, "6 min"), (30.0, "9.3 h")],
)
def test_announcement(seconds, expected):
    said = game_time.announcement(1000, 1, 4, 3, seconds)
    assert said == f"learning from 1,000 texts, 4,576 masked passes: about {expected}"


def test_measured_on_a_copy(tmp_path):
    model, said = nli_classifier(), []
    options = GroundingOptions(**SMALL, epochs=1)
    plain = train_game_head(model, tokenizer(), texts(16), tmp_path / "plain", options)
    told = train_game_head(model, tokenizer(), texts(16), tmp_path / "told", options, announce=said.append)
    assert len(said) == 1
    assert said[0].startswith("learning from 16 texts, 64 masked passes: about ")
    for one, other in zip(plain.parameters(), told.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_measured_time_is_that_of_a_batch(tmp_path, monkeypatch):
    head = train_game_head(nli_classifier(), tokenizer(), texts(8), tmp_path, GroundingOptions(**SMALL, epochs=1))
    classifier = MaskedClassifier(nli_classifier(), tokenizer())
    clock = iter([10.0, 14.0, 20.0, 29.0, 29.5])  # of a batch, and of two steps of the optimiser
    monkeypatch.setattr(game_time.time, "perf_counter", lambda: next(clock))
    asked = []

    def add_gradients(*given, hints):
        asked.append(given[3].shape)
        return torch.zeros(1)

    monkeypatch.setattr(game_time, "add_gradients", add_gradients)
    options = GroundingOptions(**SMALL, subsets=4, max_length=64, repeats=1)
    update = 0.5 / options.batch_size
    assert game_time.seconds_per_text(head, classifier, texts(40), options) == 4.0 / game_time.TRIED + update
    assert [shape[:2] for shape in asked] == [(1, 4), (game_time.TRIED, 4)]
    clock = iter([10.0, 14.0, 20.0, 21.0, 30.0, 39.0, 39.5])
    again = replace(options, repeats=3)
    assert game_time.seconds_per_text(head, classifier, texts(40), again) == 6.0 / game_time.TRIED + 3 * update
