"""A game from a stream: it learns, stops when more no longer helps, and goes on after a stop to the same weights."""

from functools import partialmethod
from itertools import count

import pytest
import torch

from spinformer.data.streams import TextStream, stream_rows
from spinformer.data.words import split_words
from spinformer.games.coalitions import draw_coalitions
from spinformer.models.masked import MaskedClassifier
from spinformer.training import game_stream
from spinformer.training.game import GroundingOptions, hold_out, train_game_head
from spinformer.training.game_options import MANY
from spinformer.training.game_stream import POWER, Watch
from tests.tiny import nli_classifier, rows, tokenizer
from tests.training.test_ground import texts

OPTIONS = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "batch_size": 8, "repeats": 2, "learning_rate": 5e-3}


@pytest.fixture(scope="module")
def classifier():
    return nli_classifier()


@pytest.fixture
def quick(monkeypatch):
    """Parts of 32 texts, and a look after every fourth update."""
    monkeypatch.setattr(TextStream, "parts", partialmethod(TextStream.parts, size=32))
    monkeypatch.setattr(game_stream, "EVERY", 4)
    monkeypatch.setattr(game_stream, "LEAST", 8)
    monkeypatch.setattr(game_stream, "RISE", 1)


def stream(most=None):
    return stream_rows(
        (row["premise"], row["hypothesis"])
        for number in (count() if most is None else range(most))
        for row in rows(16, number)
    )


def trained(classifier, folder, source, said=None, resume=False, **options):
    training, held = hold_out(source, 0, 20)
    told = [] if said is None else said
    settings = GroundingOptions(**{**OPTIONS, **options})
    return train_game_head(
        classifier, tokenizer(), training, folder, settings, held_out=held, announce=told.append, resume=resume
    )


@pytest.mark.slow
def test_it_learns_and_stops_by_itself(classifier, tmp_path, quick, monkeypatch):
    """Of a stream without end, R² on other texts above 0.5."""
    said = []
    monkeypatch.setattr(game_stream, "LEAST", 80)
    head = trained(classifier, tmp_path, stream(), said, gain=0.02, subsets=8)
    assert said[0].startswith("learning from a stream, until twice as many texts bring little: 10,000 take about ")
    assert said[1].startswith("stopped after ")
    assert ": the second half of them brought " in said[1]
    words = split_words(tokenizer(), texts(16, seed=99), 64)
    drawn = draw_coalitions(words.mask, 8, seed=5)
    real = MaskedClassifier(classifier, tokenizer()).probabilities(words, drawn)
    found = head.games(classifier, words).logits(drawn).softmax(-1).detach()
    wrong, spread = (real - found).square().sum(), (real - real.flatten(0, 1).mean(0)).square().sum()
    assert float(1 - wrong / spread) > 0.5
    assert head.misfit is not None


def test_without_a_gain_all_is_read(classifier, tmp_path, quick):
    said = []
    trained(classifier, tmp_path, stream(6), said, gain=0.0, subsets=1)
    (end,) = said[1:]
    # Of 96 texts, a tenth of the first part is held out; the last part is no whole number of batches.
    assert end.startswith("learnt from all 88 texts of the stream: an R² of ")


def test_stopped_and_resumed_to_the_same_head(classifier, tmp_path, quick, monkeypatch):
    options = {"gain": 0.0, "subsets": 1, "save_steps": 3}
    whole = trained(classifier, tmp_path / "whole", stream(6), **options)
    real, calls = game_stream.Updates.update, []

    def stop(self, *given):
        calls.append(1)
        if len(calls) == 14:
            raise KeyboardInterrupt
        real(self, *given)

    monkeypatch.setattr(game_stream.Updates, "update", stop)
    with pytest.raises(KeyboardInterrupt):
        trained(classifier, tmp_path / "parts", stream(6), **options)
    monkeypatch.setattr(game_stream.Updates, "update", real)
    with pytest.raises(ValueError, match=r"belongs to another run; these differ: texts"):
        trained(classifier, tmp_path / "parts", stream_rows(["a man eats", "a dog"] * 30), resume=True, **options)
    parts = trained(classifier, tmp_path / "parts", stream(6), resume=True, **options)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parts.parameters(), strict=True))
    assert not (tmp_path / "parts" / "game" / "state.pt").exists()


def test_a_run_that_was_over_learns_no_more(classifier, tmp_path, quick, monkeypatch):
    """Stopped while its misfit was measured, and resumed: the same weights, and it says the same."""
    options = {"gain": 0.9, "subsets": 1, "save_steps": 4}
    said, again = [], []
    whole = trained(classifier, tmp_path / "whole", stream(), said, **options)
    assert said[1].startswith("stopped after ")

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("spinformer.training.game.measure_misfit", stop)
        with pytest.raises(KeyboardInterrupt):
            trained(classifier, tmp_path / "parts", stream(), **options)
    monkeypatch.setattr(game_stream.Updates, "update", lambda *_: pytest.fail("learnt more"))
    parts = trained(classifier, tmp_path / "parts", stream(), again, resume=True, **options)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parts.parameters(), strict=True))
    assert again[1] == said[1]


def test_the_average_over_updates():
    """Weights of the average of 12 updates: those of t (t + 1) ... (t + POWER - 1), which grow as t^POWER."""
    heads = [torch.nn.Linear(2, 1) for _ in range(12)]
    averaged = torch.nn.Linear(2, 1)
    for number, head in enumerate(heads, 1):
        game_stream._average(averaged, head, number)
    shares = torch.tensor([float(torch.tensor([t + k for k in range(POWER)]).double().prod()) for t in range(1, 13)])
    expected = sum(share * head.weight for share, head in zip(shares / shares.sum(), heads, strict=True))
    torch.testing.assert_close(averaged.weight, expected)


def test_the_gain_of_the_second_half(classifier):
    watch = Watch(MaskedClassifier(classifier, tokenizer()), texts(4), GroundingOptions(max_length=64).suited(MANY))
    assert watch.gain == float("inf")
    watch.history = [(100, 0.1), (200, 0.5)]
    assert watch.gain == float("inf")  # too early to say
    watch.history += [(300, 0.7), (400, 0.72)]
    assert watch.gain == pytest.approx(0.22)
    watch.history += [(600, 0.725)]
    assert watch.gain == pytest.approx(0.025)


def test_what_a_stream_needs(classifier, tmp_path):
    with pytest.raises(ValueError, match="a stream needs held_out"):
        train_game_head(classifier, tokenizer(), stream(2), tmp_path, GroundingOptions(**OPTIONS))
    with pytest.raises(ValueError, match="has no texts"):
        train_game_head(
            classifier, tokenizer(), stream_rows([]), tmp_path, GroundingOptions(**OPTIONS), held_out=texts(4)
        )
    few, held = stream_rows(["a man eats"] * 12).split(4)
    with pytest.raises(ValueError, match="expected a stream of at least one batch of 64 texts; got fewer"):
        train_game_head(
            classifier, tokenizer(), few, tmp_path, GroundingOptions(**{**OPTIONS, "batch_size": 64}), held_out=held
        )


def test_suited_options():
    """Few texts: a small game, learnt often from the same answers; what was given stays as it is."""
    few, more, many = (GroundingOptions().suited(number) for number in (300, 5000, MANY))
    assert few.dim < more.dim < many.dim
    assert few.epochs > more.epochs
    assert many.repeats < few.repeats <= more.repeats
    assert [options.optimizer for options in (few, more, many)] == ["muon", "adamw", "muon"]
    assert all(options.suited(7) == options for options in (few, more, many))
    given = GroundingOptions(epochs=5, batch_size=3, dim=24, learning_rate=0.5).suited(1000)
    assert (given.epochs, given.batch_size, given.dim, given.learning_rate) == (5, 3, 24, 0.5)
    assert given.hidden == GroundingOptions().suited(1000).hidden
    assert GroundingOptions().suited(5).batch_size == 5
    assert GroundingOptions(heads=12).suited(300).dim % 12 == 0
