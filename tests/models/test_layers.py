"""Heads that read layers below the encoder's last."""

import pytest
import torch
from torch.nn import functional

from spinformer.models.neurogame import NeuroGameConfig, NeuroGameForSequenceClassification
from spinformer.models.neurogame.encoder import among
from spinformer.models.neurogame.heads import Layers
from spinformer.training.classifier import build as build_by
from spinformer.training.recipe import Recipe
from tests.models.test_neurogame import COMMON, ENCODERS, LABELS, NLI, TYPES, build, inputs, randomise
from tests.tiny import save_encoder
from tests.training.test_parts import texts


@pytest.mark.parametrize("head", ["neurogame", "mean", "grounded", "joint"])
def test_a_fresh_head_begins_with_the_last_layer_alone(encoder, head):
    plain, reading = build(encoder, head), build(encoder, head, layers=(0, 1))
    reading.load_state_dict(plain.state_dict(), strict=False)
    torch.testing.assert_close(reading(**inputs()).logits, plain(**inputs()).logits, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ENCODERS)
def test_what_it_reads_by_hand(kind, tmp_path):
    from transformers import AutoConfig

    config = AutoConfig.for_model(kind, **COMMON, **ENCODERS[kind])
    model = randomise(build(save_encoder(tmp_path / kind, config, kind in TYPES), "mean", layers=(1, 0)))
    batch = inputs(types=kind in TYPES)
    functional.cross_entropy(model(**batch).logits, LABELS).backward()
    found = model.model.layers.weight.grad.clone()
    model.zero_grad()

    encoded = model.model.encoder(**batch, output_hidden_states=True)
    first, second = model.model.layers.weight
    hidden = encoded.last_hidden_state + encoded.hidden_states[1] @ first.T + encoded.hidden_states[0] @ second.T
    pooled, _ = model.model.pooling(hidden, batch["attention_mask"].bool())
    logits = model.classifier(pooled)
    torch.testing.assert_close(model(**batch).logits, logits, rtol=1e-5, atol=1e-6)
    functional.cross_entropy(logits, LABELS).backward()
    assert found.abs().amax((1, 2)).min() > 0
    torch.testing.assert_close(found, model.model.layers.weight.grad, rtol=1e-4, atol=1e-7)


def test_round_trip(encoder, tmp_path):
    model = randomise(build(encoder, layers=[0]))
    model.save_pretrained(tmp_path)
    again = NeuroGameForSequenceClassification.from_pretrained(tmp_path).eval()
    assert again.config.layers == [0]
    assert torch.equal(again(**inputs()).logits, model(**inputs()).logits)


def test_hidden_states_come_only_where_they_are_asked_for(encoder):
    model = build(encoder, layers=[0])
    assert model(**inputs()).hidden_states is None
    assert len(model(**inputs(), output_hidden_states=True).hidden_states) == 3


@pytest.mark.parametrize("layers", [[2], [-1], [0, 0], ["0"], [True], [[0]], 3])
def test_layers_that_there_are_not(encoder, layers):
    with pytest.raises(ValueError, match="layers must be different numbers from 0, the embeddings, to 1, below"):
        build(encoder, layers=layers)


def test_a_recipe_names_them(encoder):
    model, _ = build_by(Recipe(encoder=str(encoder), head="mean", layers=[1]), texts(2, names=NLI))
    assert model.config.layers == [1]
    assert NeuroGameConfig().layers == []


@pytest.mark.parametrize("ids", [(), (3,), (0, 1, 2, 3)])
def test_tokens_that_are_special(ids):
    tokens = torch.randint(6, (4, 9))
    assert torch.equal(among(tokens, ids), torch.isin(tokens, torch.tensor(ids, dtype=torch.long)))


def test_states_of_another_shape_are_named():
    with pytest.raises(ValueError, match=r"of layer 1 must have shape \(2, 5, 4\); got \(2, 6, 4\)"):
        Layers(4, [1])(torch.zeros(2, 5, 4), [torch.zeros(2, 5, 4), torch.zeros(2, 6, 4)])
