"""Several processes learn the game that one learns."""

import json

import pytest
import torch
from safetensors.torch import load_file

from spinformer._base import processes
from spinformer.cli import main
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.games.coalitions import draw_coalitions
from spinformer.models.game_head import GameHead, GameHeadConfig
from spinformer.models.masked import MaskedClassifier
from spinformer.training import game_loss
from spinformer.training.game_hints import HintMap
from spinformer.training.game_options import GroundingOptions
from tests.several import run_in_two
from tests.tiny import nli_classifier, rows, tokenizer

SMALL = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16}
OPTIONS = {**SMALL, "batch-size": 7, "epochs": 2, "held-out": 4, "device": "cpu"}


def test_shares_are_all_and_none_twice():
    for count, world in ((7, 2), (8, 3), (2, 4), (0, 2)):
        parts = [processes.share(count, rank, world) for rank in range(world)]
        assert [each for part in parts for each in part] == list(range(count))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_alone():
    assert processes.rank_and_world() == (0, 1)
    with processes.joined("cpu") as device:
        assert device == torch.device("cpu")
        assert processes.rank_and_world() == (0, 1)
    with pytest.raises(ValueError, match="start the command with torchrun"):
        processes.start_processes("cpu")


@pytest.mark.parametrize("world", [2, 3, 9])  # of nine, some have no text
def test_gradients_of_all_processes_are_those_of_one(monkeypatch, world):
    torch.manual_seed(0)
    head = GameHead(GameHeadConfig((0, 1, 2), 32, 3, **SMALL, form="attending"))
    classifier = MaskedClassifier(nli_classifier(), tokenizer())
    pairs = rows(7)
    texts = Texts([row["premise"] for row in pairs], [row["hypothesis"] for row in pairs])
    words = split_words(tokenizer(), texts, 64)
    coalitions = draw_coalitions(words.mask, 3, seed=0)
    hints = HintMap.measured(head, classifier, texts, GroundingOptions(max_length=64))
    learnt = [*head.parameters(), *hints.parameters()]
    loss = game_loss.add_gradients(head, classifier, words, coalitions, hints=hints)
    whole = [parameter.grad.clone() for parameter in learnt]
    sums = [torch.zeros(1), *(torch.zeros_like(parameter) for parameter in learnt)]

    def collect(tensors):
        for total, tensor in zip(sums, tensors, strict=True):
            total += tensor

    monkeypatch.setattr(game_loss, "sum_over_processes", collect)
    for rank in range(world):
        for parameter in learnt:
            parameter.grad = None
        monkeypatch.setattr(game_loss, "rank_and_world", lambda rank=rank: (rank, world))
        game_loss.add_gradients(head, classifier, words, coalitions, hints=hints)
    assert float(sums[0]) == pytest.approx(float(loss), rel=1e-5)
    for found, expected in zip(sums[1:], whole, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_two_processes_learn_the_game_of_one(tmp_path):
    model, classifier = tmp_path / "model", nli_classifier()
    classifier.save_pretrained(model)
    tokenizer().save_pretrained(model)
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows(40, longest=6)))
    options = [word for name, value in OPTIONS.items() for word in (f"--{name}", str(value))]
    command = ["ground", str(model), str(texts), *options]
    assert main([*command, "--output", str(tmp_path / "one")]) == 0
    assert run_in_two([*command, "--output", tmp_path / "two"]).count("the game is in") == 1
    one, two = (load_file(tmp_path / name / "game" / "game.safetensors") for name in ("one", "two"))
    for name, value in one.items():
        if name != "readout.last.3.bias":  # it cancels in g(C) - g(N): its gradient is rounding, which Adam makes large
            torch.testing.assert_close(two[name], value, rtol=1e-4, atol=1e-4, msg=name)
    words = split_words(tokenizer(), Texts(["the man eats outside"], ["not a dog"]), 64)
    coalitions = draw_coalitions(words.mask, 16, seed=0)
    found = [GameHead.load(tmp_path / name, classifier).games(classifier, words) for name in ("one", "two")]
    values = [games.game().evaluate(coalitions).detach() for games in found]
    torch.testing.assert_close(values[1], values[0], rtol=0, atol=1e-4)
