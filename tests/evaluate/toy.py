"""A classifier of two classes that is sure of the first by a known function of the words it sees."""

from types import SimpleNamespace

import torch

from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.evaluate import decide
from spinformer.models.masked import MaskedClassifier
from tests import tiny

WEIGHTS = {"man": 2.0, "dog": 1.0, "cat": 0.5, "red": 0.0, "not": -1.0, "runs": 0.7, "two": -0.3, "eats": 0.2}


class Toy(torch.nn.Module):
    """p_0 = sigmoid(bias + sum of the visible words' weights + sum over visible pairs of their weight)."""

    def __init__(self, weights=WEIGHTS, pairs=None, bias=0.0):
        super().__init__()
        ids = {word: 4 + number for number, word in enumerate(tiny.WORDS)}
        single = torch.zeros(4 + len(ids))
        double = torch.zeros(len(single), len(single))
        for word, weight in weights.items():
            single[ids[word]] = weight
        for (first, second), weight in (pairs or {}).items():
            double[ids[first], ids[second]] = weight
        self.singles, self.couples = torch.nn.Parameter(single), torch.nn.Parameter(double)
        self.bias = bias
        self.calls = 0

    def forward(self, input_ids, attention_mask, **rest):
        self.calls += 1
        visible = torch.nn.functional.one_hot(input_ids, len(self.singles)) * attention_mask[..., None]
        count = visible.sum(1).float()
        present = count.clamp(max=1)
        z = self.bias + count @ self.singles + ((present @ self.couples) * present).sum(-1)
        return SimpleNamespace(logits=torch.stack([z, torch.zeros_like(z)], 1))


def classifier(**options):
    return MaskedClassifier(Toy(**options), tiny.tokenizer())


def decisions(*texts, rows=None, max_length=64, **options):
    """What the toy decides on single texts, or on pairs given as (premise, hypothesis)."""
    toy = classifier(**options)
    return decide(toy, split_words(toy.tokenizer, as_texts(texts), max_length), rows)


def as_texts(texts):
    if isinstance(texts[0], str):
        return Texts(texts)
    first, second = zip(*texts, strict=True)
    return Texts(first, second)
