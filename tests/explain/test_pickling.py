"""An explainer after pickling: the numbers of the first one, whatever was asked of it before, and whoever uses it."""

import copy
import io
import pickle

import pytest
import torch

from spinformer.explain import Explainer
from spinformer.explain.methods.additive import AdditiveExplainer
from tests.explain.world import assert_same, at_once, snapshot
from tests.tiny import tokenizer

TEXT = ("a man runs outside", "the man sleeps not")


@pytest.fixture
def explainer(model):
    """With a game, whose states transformers reads through hooks, and with scores that read states too."""
    made = Explainer(model, tokenizer())
    made.additive = AdditiveExplainer(made.classifier, width=8)
    return made


def saved(explainer):
    file = io.BytesIO()
    torch.save(explainer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def pickled(explainer):
    return pickle.loads(pickle.dumps(explainer))


def hooked(model):
    return [module for module in model.modules() if module._forward_hooks]


@pytest.mark.parametrize("again", [pickled, saved, copy.deepcopy])
def test_before_and_after_it_was_used(explainer, again):
    before = again(explainer)
    expected = explainer(*TEXT)
    assert hooked(explainer.model)  # else this tests nothing
    state = snapshot(explainer.model)
    after = again(explainer)
    assert before(*TEXT) == after(*TEXT) == again(after)(*TEXT) == explainer(*TEXT) == expected
    assert after(*TEXT, method="kernel-shap", passes=16) == explainer(*TEXT, method="kernel-shap", passes=16)
    assert after.grounded.model is after.additive.classifier.model is after.model is not explainer.model
    assert_same(state, snapshot(explainer.model))


def test_weights_are_not_copied_and_other_hooks_stay(explainer):
    explainer(*TEXT)
    handle = explainer.model.register_forward_hook(print)
    held = explainer.__getstate__()["classifier"].model
    handle.remove()
    assert hooked(held) == [held]
    assert list(held._forward_hooks.values()) == [print]
    ours = dict(explainer.model.named_parameters())
    assert all(tensor is ours[name] for name, tensor in held.named_parameters())
    assert held.base_model is held.bert is not explainer.model.bert


def test_a_copy_has_the_same_model(explainer):
    explainer(*TEXT)
    assert copy.copy(explainer).model is explainer.model


def test_while_other_threads_explain(explainer):
    expected = explainer(*TEXT)
    calls = [lambda: explainer(*TEXT), lambda: pickled(explainer)(*TEXT)] * 3
    assert all(found == expected for found in at_once(calls, threads=3))
