"""A softmax attention learnt on a frozen encoder: what it learns and points to, that it is saved, what it refuses."""

import pytest
import torch

from spinformer.evaluate.methods import Source, methods, offered
from spinformer.explain import MaskedClassifier
from spinformer.explain.attribution import AttentionPooling, LearntPooling
from spinformer.explain.attribution.pooling import WEIGHTS
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from tests.explain.test_additive import texts
from tests.explain.toys import classifier, tokenizer, words


@pytest.fixture(scope="module")
def learnt():
    made = classifier()
    found = LearntPooling(made)
    before = made.passes
    record = found.train(texts(300), epochs=20, batch_size=30, learning_rate=3e-3, quiet=True)
    assert made.passes - before == 20 * 300
    assert record["steps"] == 200
    return found


def test_it_answers_as_the_classifier_does(learnt):
    held = texts(60, seed=1)
    fresh = LearntPooling(learnt.classifier)
    inputs = words(held).inputs

    @torch.no_grad()
    def apart(pooling):
        answers, hidden = pooling._look(inputs)
        said = pooling.head(hidden, inputs["attention_mask"].bool()).softmax(-1)
        return float((said - answers).abs().mean())

    assert apart(learnt) < 0.5 * apart(fresh)
    assert learnt.record["agreement"] > 0.8


def test_scores_are_the_weights_of_words(learnt):
    found = words()
    before = learnt.classifier.passes
    scores = learnt(found)
    assert learnt.classifier.passes - before == len(found.words)  # one pass a text
    assert scores.shape == found.mask.shape
    assert (scores[~found.mask] == 0).all()
    total = scores.sum(-1)
    assert ((total > 0) & (total < 1)).all()  # special tokens have the rest


def test_the_same_weights_give_what_a_head_of_its_own_would(encoder):
    torch.manual_seed(0)
    model = NeuroGameForSequenceClassification.from_encoder(encoder, head="attention").eval()
    made = MaskedClassifier(model, tokenizer())
    found = LearntPooling(made)
    found.head.pooling.load_state_dict(model.model.pooling.state_dict())
    found.record = {}
    torch.testing.assert_close(found(words()), AttentionPooling(made)(words()))


def test_a_classifier_that_has_attention_is_explained_by_its_own(encoder, learnt):
    model = NeuroGameForSequenceClassification.from_encoder(encoder, head="attention").eval()
    made = MaskedClassifier(model, tokenizer())
    own = Source(made, pooling=LearntPooling(made))
    assert offered(own).count("attention-pooling") == 1
    assert isinstance(methods(["attention-pooling"], own)[0], AttentionPooling)
    other = Source(learnt.classifier, pooling=learnt)
    assert offered(other).count("attention-pooling") == 1
    assert methods(["attention-pooling"], other) == [learnt]
    assert "attention-pooling" not in offered(Source(learnt.classifier))


def test_the_classifier_is_left_as_it_is(learnt):
    made = classifier()
    assert all(
        torch.equal(a, b) for a, b in zip(made.model.parameters(), learnt.classifier.model.parameters(), strict=True)
    )
    assert all(parameter.grad is None for parameter in learnt.classifier.model.parameters())


def test_saved_and_loaded_it_says_the_same(learnt, tmp_path):
    learnt.save(tmp_path)
    again = LearntPooling.load(tmp_path, learnt.classifier)
    assert torch.equal(again(words()), learnt(words()))
    assert again.record == learnt.record
    (tmp_path / WEIGHTS).write_bytes(b"no weights")
    with pytest.raises(ValueError, match="the pooling is damaged"):
        LearntPooling.load(tmp_path, learnt.classifier)
    with pytest.raises(ValueError, match=r"expected pooling\.safetensors"):
        LearntPooling.load(tmp_path / "nowhere", learnt.classifier)


def test_twice_the_same():
    def train():
        found = LearntPooling(classifier(), seed=3)
        found.train(texts(40), batch_size=10, seed=5, quiet=True)
        return found.head.state_dict()

    one, other = train(), train()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_what_is_refused(learnt):
    with pytest.raises(ValueError, match="learnt nothing yet"):
        LearntPooling(learnt.classifier)(words())
    with pytest.raises(ValueError, match="epochs must be an integer of at least 1; got 0"):
        learnt.train(texts(10), epochs=0)
    with pytest.raises(ValueError, match="learning_rate must be"):
        learnt.train(texts(10), learning_rate=-1.0)
