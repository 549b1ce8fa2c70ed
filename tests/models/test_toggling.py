"""Coalitions that differ by a few words from one that was read, against reading each of them."""

from dataclasses import replace

import pytest
import torch

from spinformer.games import Game
from spinformer.models import attending, toggling
from spinformer.models.attending import Attending, bounded_exp
from spinformer.models.attending_readout import AttendingReadout
from spinformer.models.game_head import GameHeadConfig
from spinformer.models.merged_games import Merged, MergedReadout
from spinformer.models.predicted_games import PredictedGames

HEADS, PART = 3, 4


@pytest.fixture(autouse=True)
def all_texts_are_long(monkeypatch):
    monkeypatch.setattr(attending, "PRODUCTS", 0)


def games(words: int, spread: float, texts: int = 1) -> PredictedGames:
    """Of random features and a random readout of large weights; spread: of the logarithms of attention weights."""
    generator = torch.Generator().manual_seed(words)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    with torch.random.fork_rng():
        torch.manual_seed(5)
        sizes = {"heads": HEADS, "dim": HEADS * PART, "hidden": 8, "readout": 16, "reads": 2, "form": "attending"}
        readout = AttendingReadout(GameHeadConfig((0,), 8, 3, **sizes))
        with torch.no_grad():
            for parameter in readout.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    weights = bounded_exp(spread * normal(texts, HEADS, words, 1 + words))
    width = HEADS * PART
    features = Attending(
        weights, normal(texts, HEADS, 1 + words, PART), normal(texts, words, width), normal(texts, width)
    )
    mask = torch.ones(texts, words, dtype=torch.bool)
    return PredictedGames(readout, features, normal(texts, 3).log_softmax(-1), mask)


def contexts(words: int) -> torch.Tensor:
    """None, all, and some of the words."""
    chance = torch.tensor([0.0, 1.0, 0.1, 0.5, 0.9])[:, None]
    return torch.rand(5, words, generator=torch.Generator().manual_seed(1)) < chance


def sets_of(size: int, words: int) -> torch.Tensor:
    return torch.arange(words)[:, None] if size == 1 else torch.combinations(torch.arange(0, words, 2), size)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_exact_where_nothing_is_taken_to_first_order(monkeypatch, size):
    """With STRONG = 0 values and gradients are those of the plain form, for one text of a batch."""
    monkeypatch.setattr(toggling, "STRONG", 0.0)
    found = []
    for plain in (True, False):
        predicted = games(9, 1.5, texts=2)
        features = predicted.features
        leaves = [features.weights, features.values, features.words, features.query]
        for leaf in leaves:
            leaf.requires_grad_()
        game = predicted.game()
        way = Game.toggled if plain else type(game).toggled
        values = way(game, 1, contexts(9), sets_of(size, 9))
        values.square().sum().backward()
        parameters = [part.grad for part in predicted.readout.parameters()]
        found.append([values.detach(), *(leaf.grad for leaf in leaves), *parameters])
    for expected, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, expected, rtol=1e-3, atol=1e-5)
    assert float(found[0][0].std()) > 0.01


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_first_order_is_near(size, spread):
    """60 words, even attention and attention to few: what a word changes is met within 1% of all changes, and without
    the exact part for strong words it would not be."""
    game, coalitions, sets = games(60, spread).game(), contexts(60), sets_of(size, 60)[:200]
    with torch.no_grad():
        base = game.evaluate(coalitions[None])[0, :, None]
        expected = Game.toggled(game, 0, coalitions, sets) - base
        errors = []
        for strong in (toggling.STRONG, 2.0):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(toggling, "STRONG", strong)
                found = game.toggled(0, coalitions, sets) - base
            errors.append(float((found - expected).norm() / expected.norm()))
    assert errors[0] < 0.01
    assert errors[0] < errors[1] / 3


@pytest.mark.parametrize("size", [1, 2])
def test_players_of_one_word_and_of_several(monkeypatch, size):
    """Three players of several words, six of one and a word of none: with STRONG = 0 as the plain form."""
    monkeypatch.setattr(toggling, "STRONG", 0.0)
    owners = torch.tensor([[0, 0, 1, 2, 2, 3, 4, -1, 5, 6, 6, 7, 8]])
    words = games(13, 1.5)
    merged = Merged(words.features, owners, owners < 0, 9)
    mask = torch.ones(1, 9, dtype=torch.bool)
    game = replace(words, readout=MergedReadout(words.readout), features=merged, mask=mask).game()
    _, _, members, word = game.games.readout.in_words(merged, contexts(9).float(), torch.arange(9)[:, None])
    assert word.squeeze(1).tolist() == [-1, 2, -1, 5, 6, 8, -1, 11, 12]
    assert torch.equal(members[:, 7], torch.ones(5))
    with torch.no_grad():
        for sets in (sets_of(size, 9), torch.tensor([[1, 3][:size]]), torch.tensor([[0, 3][:size]])):
            expected = Game.toggled(game, 0, contexts(9), sets)
            torch.testing.assert_close(game.toggled(0, contexts(9), sets), expected, rtol=1e-3, atol=1e-5)
