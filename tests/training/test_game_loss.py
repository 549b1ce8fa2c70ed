"""The loss of a game head: by hand, and the same gradients from parts of a batch as from the whole."""

import pytest
import torch
from transformers import BertForSequenceClassification

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games.coalitions import draw_coalitions
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.hints import hint_layers
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import offsets_of
from spinformer.training import game_loss
from spinformer.training.game_hints import HintMap
from spinformer.training.game_options import GroundingOptions
from tests.tiny import bert, tokenizer

TEXTS = Texts(["the man sleeps", "a dog runs outside", "two red cat not inside the man", "cat", "a man eats"])


def classifier():
    torch.manual_seed(0)
    return MaskedClassifier(BertForSequenceClassification(bert(num_labels=3)).eval(), tokenizer())


@pytest.mark.parametrize("form", ["attending", "sums"])
def test_parts_of_a_batch_have_the_gradients_of_the_whole(form, monkeypatch):
    asked, words = classifier(), split_words(tokenizer(), TEXTS, 32)
    coalitions = draw_coalitions(words.mask, 4, seed=1)
    sizes = {"layers": (0, 2), "width": 32, "classes": 3, "heads": 4, "dim": 16, "hidden": 16, "readout": 16}
    head = GameHead(GameHeadConfig(**sizes, form=form, fading=True))
    hints = HintMap.measured(head, asked, TEXTS, GroundingOptions(max_length=32))
    learnt = [*head.parameters(), *hints.parameters()]
    found = []
    for most in (2**28, 2 * 7 * 8 * 16, 1):  # all at once, two at a time, one at a time
        monkeypatch.setattr(game_loss, "MOST", (most, most))
        for weight in learnt:
            weight.grad = None
        value = game_loss.add_gradients(head, asked, words, coalitions, hints=hints)
        found.append((float(value), [weight.grad.clone() for weight in learnt if weight.grad is not None]))
    for value, gradients in found[1:]:
        assert value == pytest.approx(found[0][0], rel=1e-5)
        for one, other in zip(gradients, found[0][1], strict=True):
            torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("outputs", ["classes", "labels", "scores"])
def test_by_hand(outputs):
    torch.manual_seed(1)
    shape = (2, 3, 4)
    logits = torch.randn(shape, dtype=torch.double)
    answers = {"classes": torch.softmax, "labels": lambda x, _: torch.sigmoid(x), "scores": lambda x, _: x}[outputs](
        torch.randn(shape, dtype=torch.double), -1
    ).float()
    config = GameHeadConfig((0,), 8, 4, heads=1, dim=8, outputs=outputs, scale=2.0 if outputs == "scores" else 1.0)
    found = game_loss.game_loss(answers, offsets_of(logits, outputs), config)
    total = 0.0
    for text, own in zip(answers, logits.float(), strict=True):
        units = text / config.scale
        spread = float((units - units.mean(0)).square().mean(0).sum())
        for p, o in zip(text, own, strict=True):
            share = game_loss.FLOOR / (game_loss.FLOOR + spread)
            if outputs == "scores":
                total += share * float(((p - o) / 2).square().sum())
                continue
            q = o.softmax(-1) if outputs == "classes" else o.sigmoid()
            entropy = -(p * q.log()).sum()
            if outputs == "labels":
                entropy = entropy - ((1 - p) * (1 - q).log()).sum()
            total += share * float((p - q).square().sum()) + game_loss.ENTROPY * float(entropy)
    assert float(found) == pytest.approx(total / 6, rel=1e-5)


def test_hints_by_hand():
    """The mean state of the visible tokens in three layers, in units of their spread, and the error of a linear map."""
    asked, words = classifier(), split_words(tokenizer(), TEXTS, 32)
    head = GameHead(GameHeadConfig((0, 2), 32, 3, heads=4, dim=16, form="attending", fading=True))
    hints = HintMap.measured(head, asked, TEXTS, GroundingOptions(max_length=32, hints=2.0))
    coalitions = draw_coalitions(words.mask, 4, seed=1)
    answers, found = asked.probabilities_and_hints(words, coalitions)
    torch.testing.assert_close(answers, asked.probabilities(words, coalitions))
    for row, number in ((0, 1), (2, 3)):
        visible = words.tokens(coalitions)[row, number]
        inputs = {name: value[row : row + 1] for name, value in words.inputs.items()} | {
            "attention_mask": visible[None]
        }
        states = asked.model(**inputs, output_hidden_states=True).hidden_states
        expected = torch.cat([states[layer][0, visible].mean(0) for layer in hint_layers(len(states) - 1)])
        torch.testing.assert_close(found[row, number], expected, atol=1e-5, rtol=1e-4)
    units = hints.units(found)
    torch.testing.assert_close(units.float(), (found - hints.mean) / hints.spread, atol=1e-2, rtol=1e-2)
    logits, states = head.games(asked.model, words).logits_and_states(coalitions)
    torch.testing.assert_close(logits, head.games(asked.model, words).logits(coalitions))
    normal = (states - states.mean(-1, keepdim=True)) / (states.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    wrong = normal @ hints.map.weight.T + hints.map.bias - units.float()
    torch.testing.assert_close(hints(states, units), 2 * wrong.square().mean())


@pytest.mark.parametrize(
    ("count", "expected"), [(1, (1,)), (2, (1, 2)), (4, (2, 3, 4)), (6, (2, 4, 6)), (12, (4, 8, 12))]
)
def test_layers_of_hints(count, expected):
    assert hint_layers(count) == expected


def test_the_scale_of_scores():
    torch.manual_seed(0)
    model = BertForSequenceClassification(bert(num_labels=1)).eval()
    asked = MaskedClassifier(model, tokenizer())
    scores = asked.full_probabilities(split_words(tokenizer(), TEXTS, 32))
    assert game_loss.score_scale(asked, TEXTS, 32) == pytest.approx(float(scores.std(correction=0)), rel=1e-5)
    assert game_loss.score_scale(classifier(), TEXTS, 32) == 1.0
