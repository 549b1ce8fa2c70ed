"""Loading, predicting and grounding leave the caller's world alone, also with six threads at once."""

import torch

import spinformer
from spinformer.data.texts import Texts
from spinformer.models.masked import MaskedClassifier
from spinformer.models.predict import predict
from tests.explain.world import assert_same, at_once, snapshot
from tests.tiny import nli_classifier, tokenizer

TEXTS = Texts(["the dog runs", "a man eats", "two red cat"], ["a cat sleeps", "not", "the woman"])
SMALL = {"epochs": 1, "heads": 2, "dim": 8, "hidden": 8, "readout": 8, "batch_size": 2}


def test_predict():
    """A model in training: logits of evaluation mode from every thread, and it is in training after."""
    model = nli_classifier()
    expected = predict(model, tokenizer(), TEXTS, progress=False).logits
    model.train()
    before = snapshot(model)
    calls = [lambda: predict(model, tokenizer(), TEXTS, batch_size=1, progress=False).logits] * 24
    for logits in at_once(calls):
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    MaskedClassifier(model, tokenizer())
    assert_same(before, snapshot(model))


def test_loading(tmp_path):
    """Six threads: transformers is as talkative as before."""
    nli_classifier().save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    before = snapshot()
    at_once([lambda: spinformer.load_classifier(tmp_path, device="cpu")] * 18)
    assert_same(before, snapshot())


def test_grounding(tmp_path):
    """Two classifiers at once: random states as before, and the games that each learns alone."""
    models = [nli_classifier(seed).train() for seed in (0, 1)]
    texts = [("the dog runs", "a cat sleeps"), ("a man eats", "not"), ("two red cat", "the woman"), ("a dog", "a cat")]

    def ground(number, folder):
        explainer = spinformer.ground(models[number], tokenizer(), texts * 3, tmp_path / folder, **SMALL)
        return [value.clone() for value in explainer.grounded.head.state_dict().values()]

    alone = [ground(number, f"alone-{number}") for number in (0, 1)]
    before = snapshot(*models)
    together = at_once([lambda number=number: ground(number, f"both-{number}") for number in (0, 1)])
    assert_same(before, snapshot(*models))
    for one, other in zip(alone, together, strict=True):
        assert all(torch.equal(first, second) for first, second in zip(one, other, strict=True))
