"""Tiny classifiers, explainers and texts, each made once in a process and only read afterwards."""

from functools import lru_cache

import torch
from hypothesis import strategies as st

from spinformer.data import Texts, split_words
from spinformer.explain import Explainer, ground
from spinformer.explain.methods.additive import AdditiveExplainer
from spinformer.models import MaskedClassifier
from tests import tiny

SMALL = {"heads": 2, "dim": 8, "hidden": 16, "readout": 8, "batch_size": 8, "epochs": 1}
words = st.lists(st.sampled_from(tiny.WORDS), min_size=1, max_size=5).map(" ".join)
pairs = st.tuples(words, words)


def texts(count: int = 24, seed: int = 0, longest: int = 6) -> Texts:
    rows = tiny.rows(count, seed, longest)
    labels = [tiny.NLI.index(row["label"]) for row in rows]
    return Texts([row["premise"] for row in rows], [row["hypothesis"] for row in rows], labels, tiny.NLI)


@lru_cache(maxsize=1)
def tokenizer():
    return tiny.tokenizer()


@lru_cache(maxsize=4)
def classifier(seed: int = 0):
    """A BERT with random weights whose answers differ from text to text."""
    model = tiny.nli_classifier(seed)
    with torch.no_grad():
        model.classifier.weight.mul_(5)
    return model


@lru_cache(maxsize=1)
def masked() -> MaskedClassifier:
    return MaskedClassifier(classifier(), tokenizer())


@lru_cache(maxsize=1)
def bare() -> Explainer:
    """Without a game."""
    return Explainer(classifier(), tokenizer())


@lru_cache(maxsize=1)
def grounded() -> Explainer:
    """With a game, its measured misfit, and an additive explainer."""
    made = ground(classifier(), tokenizer(), texts(40), **SMALL)
    made.additive = AdditiveExplainer(made.classifier, width=8)
    made.additive.train(texts(8), passes=80, batch_size=4, quiet=True)
    return made


def split(rows: Texts, length: int = 64):
    return split_words(tokenizer(), rows, length)
