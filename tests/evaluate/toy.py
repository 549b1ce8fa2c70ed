"""A classifier of two classes that is sure of the first by a known function of the words it sees."""

from types import SimpleNamespace

import torch

from spinformer.data.texts import Texts
from spinformer.evaluate import decide
from spinformer.explain import MaskedClassifier, split
from tests import tiny

WEIGHTS = {"man": 2.0, "dog": 1.0, "cat": 0.5, "red": 0.0, "not": -1.0, "runs": 0.7, "two": -0.3, "eats": 0.2}


class Toy(torch.nn.Module):
    """p_0 = sigmoid(bias + sum of the visible words' weights + sum over visible pairs of their weight)."""

    def __init__(self, weights=WEIGHTS, pairs=None, bias=0.0):
        super().__init__()
        place = {word: 4 + number for number, word in enumerate(tiny.WORDS)}
        single = torch.zeros(4 + len(place))
        double = torch.zeros(len(single), len(single))
        for word, weight in weights.items():
            single[place[word]] = weight
        for (first, second), weight in (pairs or {}).items():
            double[place[first], place[second]] = weight
        self.singles, self.couples = torch.nn.Parameter(single), torch.nn.Parameter(double)
        self.bias = bias
        self.calls = 0

    def forward(self, input_ids, attention_mask, **rest):
        self.calls += 1
        seen = torch.nn.functional.one_hot(input_ids, len(self.singles)) * attention_mask[..., None]
        count = seen.sum(1).float()
        there = count.clamp(max=1)
        z = self.bias + count @ self.singles + ((there @ self.couples) * there).sum(-1)
        return SimpleNamespace(logits=torch.stack([z, torch.zeros_like(z)], 1))


def classifier(**options):
    return MaskedClassifier(Toy(**options), tiny.tokenizer())


def decisions(*texts, rows=None, max_length=64, **options):
    """What the toy decides on single texts, or on pairs given as (premise, hypothesis)."""
    return decide(own := classifier(**options), split(own.tokenizer, as_texts(texts), max_length), rows)


def as_texts(texts):
    if isinstance(texts[0], str):
        return Texts(texts)
    first, second = zip(*texts, strict=True)
    return Texts(first, second)
