"""The registry of pooling heads: a new one is registered in one place and used like any other."""

import pytest
import torch
from torch import nn

pytest.importorskip("transformers")

from transformers import AutoModelForSequenceClassification

from spinformer.models.neurogame import NeuroGameConfig, NeuroGameForSequenceClassification
from spinformer.models.pooling import POOLING_HEADS, JointPooling, PoolingHead, joint_head
from tests.models.test_neurogame import LABELS, PAIRS, build, inputs, randomise
from tests.tiny import NLI


class Max(nn.Module):
    """z = max_i x_i over the real tokens, component by component."""

    def forward(self, hidden, mask, special=None):
        return hidden.masked_fill(~mask[..., None], -torch.inf).amax(1), None


@pytest.fixture
def max_head():
    yield POOLING_HEADS.register(PoolingHead("max", "the maximum over the tokens", lambda options: Max()))
    POOLING_HEADS.unregister("max")


def test_every_head_says_what_it_does():
    assert list(POOLING_HEADS) == ["neurogame", "cls", "mean", "attention", "released", "spins", "grounded", "joint"]
    for name, head in POOLING_HEADS.items():
        assert head.name == name
        assert head.summary
        assert "\n" not in head.summary
    assert [name for name, head in POOLING_HEADS.items() if head.uses_layer] == ["neurogame", "spins", "joint"]
    assert [name for name, head in POOLING_HEADS.items() if head.plays] == ["neurogame", "spins"]
    assert [name for name, head in POOLING_HEADS.items() if head.has_game_head] == ["grounded"]
    assert POOLING_HEADS["joint"].parts == ("cls", "mean", "attention", "neurogame")


def test_a_new_head(max_head, encoder, tmp_path):
    model = NeuroGameForSequenceClassification.from_encoder(encoder, labels=NLI, head="max").eval()
    assert not model.plays
    randomise(model)
    output = model(**inputs(), labels=LABELS)
    output.loss.backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    for row, pair in enumerate(PAIRS):  # by hand, without padding
        hidden = model.model.encoder(**inputs([pair])).last_hidden_state[0]
        expected = model.classifier(hidden.max(0).values)
        torch.testing.assert_close(output.logits[row], expected, rtol=1e-5, atol=1e-5)

    model.save_pretrained(tmp_path)
    for load in (NeuroGameForSequenceClassification, AutoModelForSequenceClassification):
        loaded = load.from_pretrained(tmp_path)
        assert loaded.config.head == "max"
        assert torch.equal(loaded(**inputs()).logits, output.logits)


def test_a_new_head_among_several(max_head, encoder):
    POOLING_HEADS.register(joint_head("both", "two heads at once", ("max", "mean")))
    try:
        model = randomise(build(encoder, "both"))
        assert isinstance(model.model.pooling, JointPooling)
        head_logits = model(**inputs()).head_logits
        for index, name in enumerate(("max", "mean")):
            alone = model.part(name)(**inputs()).logits
            torch.testing.assert_close(alone, head_logits[:, index], rtol=1e-5, atol=1e-5)
    finally:
        POOLING_HEADS.unregister("both")


def test_an_unregistered_head_is_refused(encoder, tmp_path):
    head = POOLING_HEADS.register(PoolingHead("max", "the maximum over the tokens", lambda options: Max()))
    with pytest.raises(ValueError, match="pooling head 'max' is registered already"):
        POOLING_HEADS.register(head)
    build(encoder, "max").save_pretrained(tmp_path)
    POOLING_HEADS.unregister("max")
    message = "pooling head must be one of 'neurogame', 'cls', 'mean', .*; got 'max'"
    with pytest.raises(ValueError, match=message):
        NeuroGameConfig(head="max")
    with pytest.raises(ValueError, match=message):
        NeuroGameForSequenceClassification.from_pretrained(tmp_path)
