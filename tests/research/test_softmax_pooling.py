"""Softmax attention learnt on a frozen encoder: what it learns and looks at, that it is saved, what it refuses."""

import pytest
import torch

from research.experiments.methods import AttentionPooling
from research.experiments.softmax_pooling import WEIGHTS, SoftmaxPooling
from spinformer.data.texts import Texts
from spinformer.explain.context import Context
from spinformer.explain.methods import METHODS, get_method
from spinformer.explain.methods.layer import LayerScores
from spinformer.models.masked import MaskedClassifier
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from tests import tiny
from tests.explain.toys import classifier, tokenizer, words


def texts(count: int, seed: int = 0) -> Texts:
    rows = tiny.rows(count, seed, longest=5)
    return Texts([row["premise"] for row in rows], [row["hypothesis"] for row in rows])


@pytest.fixture(scope="module")
def trained():
    model = classifier()
    pooling = SoftmaxPooling(model)
    before = model.passes
    record = pooling.train(texts(300), epochs=20, batch_size=30, learning_rate=3e-3, quiet=True)
    assert model.passes - before == 20 * 300
    assert record["steps"] == 200
    return pooling


def test_it_answers_as_the_classifier_does(trained):
    held = texts(60, seed=1)
    fresh = SoftmaxPooling(trained.classifier)
    inputs = words(held).inputs

    @torch.no_grad()
    def error(pooling):
        answers, hidden = pooling._encode(inputs)
        probabilities = pooling.head(hidden, inputs["attention_mask"].bool()).softmax(-1)
        return float((probabilities - answers).abs().mean())

    assert error(trained) < 0.5 * error(fresh)
    assert trained.record["agreement"] > 0.8


def test_scores_are_the_weights_of_words(trained):
    batch = words()
    before = trained.classifier.passes
    scores = trained(batch)
    assert trained.classifier.passes - before == len(batch.words)  # one pass a text
    assert scores.shape == batch.mask.shape
    assert (scores[~batch.mask] == 0).all()
    total = scores.sum(-1)
    assert ((total > 0) & (total < 1)).all()  # special tokens have the rest


def test_the_same_weights_give_what_a_head_of_its_own_would(encoder):
    torch.manual_seed(0)
    model = NeuroGameForSequenceClassification.from_encoder(encoder, head="attention").eval()
    masked = MaskedClassifier(model, tokenizer())
    pooling = SoftmaxPooling(masked)
    pooling.head.pooling.load_state_dict(model.model.pooling.state_dict())
    pooling.record = {}
    torch.testing.assert_close(pooling(words()), LayerScores(masked)(words()))


def test_a_classifier_that_has_attention_is_explained_by_its_own(encoder, trained):
    model = NeuroGameForSequenceClassification.from_encoder(encoder, head="attention").eval()
    masked = MaskedClassifier(model, tokenizer())
    context = Context(masked)
    assert "of its own" in AttentionPooling(SoftmaxPooling(masked)).missing(context)
    assert isinstance(get_method("layer").scorer(context), LayerScores)
    other = Context(trained.classifier)
    assert AttentionPooling(trained).missing(other) is None
    assert AttentionPooling(trained).scorer(other) is trained
    assert "trained on this classifier" in AttentionPooling(None).missing(other)
    assert "trained on this classifier" in AttentionPooling(trained).missing(Context(classifier()))
    assert "attention-pooling" not in METHODS  # a method of the documents only


def test_fields_of_the_layer(encoder, trained):
    torch.manual_seed(0)
    model = NeuroGameForSequenceClassification.from_encoder(encoder, head="neurogame").eval()
    context = Context(MaskedClassifier(model, tokenizer()))
    method = get_method("layer-field")
    assert method.missing(context) is None
    scorer = method.scorer(context)
    assert scorer.name == "layer-field"
    batch = words()
    fields = model(**batch.inputs, output_game=True).game.fields.mean(1)
    torch.testing.assert_close(scorer(batch), batch.sums(fields), atol=0.2, rtol=0)  # coalitions are drawn
    assert scorer(batch).shape == batch.mask.shape
    assert "neurogame" in method.missing(Context(trained.classifier))


def test_the_classifier_is_left_as_it_is(trained):
    untouched = classifier().model.parameters()
    assert all(torch.equal(a, b) for a, b in zip(untouched, trained.classifier.model.parameters(), strict=True))
    assert all(parameter.grad is None for parameter in trained.classifier.model.parameters())


def test_saved_and_loaded_it_says_the_same(trained, tmp_path):
    trained.save(tmp_path)
    again = SoftmaxPooling.load(tmp_path, trained.classifier)
    assert torch.equal(again(words()), trained(words()))
    assert again.record == trained.record
    (tmp_path / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(ValueError, match="the pooling is damaged"):
        SoftmaxPooling.load(tmp_path, trained.classifier)
    with pytest.raises(ValueError, match=r"expected pooling\.safetensors"):
        SoftmaxPooling.load(tmp_path / "nowhere", trained.classifier)


def test_twice_the_same():
    def train():
        pooling = SoftmaxPooling(classifier(), seed=3)
        pooling.train(texts(40), batch_size=10, seed=5, quiet=True)
        return pooling.head.state_dict()

    one, other = train(), train()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_what_is_refused(trained):
    with pytest.raises(ValueError, match="learnt nothing yet"):
        SoftmaxPooling(trained.classifier)(words())
    with pytest.raises(ValueError, match="epochs must be an integer of at least 1; got 0"):
        trained.train(texts(10), epochs=0)
    with pytest.raises(ValueError, match="learning_rate must be"):
        trained.train(texts(10), learning_rate=-1.0)
