"""Head "joint": each part as it would be alone, their mean answer, and the encoder that other heads take over."""

import pytest
import torch
from torch import nn
from torch.nn import functional

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, pipeline

from spinformer.data.texts import Texts
from spinformer.explain.methods.layer import LayerScores
from spinformer.models.loading import load_classifier
from spinformer.models.masked import MaskedClassifier
from spinformer.models.neurogame import NeuroGameForSequenceClassification
from spinformer.models.pooling import POOLING_HEADS, log_mean_probability
from spinformer.models.predict import predict
from tests.models.test_neurogame import LABELS, PAIRS, build, inputs, randomise
from tests.tiny import NLI, tokenizer

JOINT = POOLING_HEADS["joint"].parts
GAMES = pytest.mark.parametrize(
    "game", [{}, {"preset": "paper", "temperature": 30.0}, {"special_tokens": False, "heads": 2}], ids=str
)


@pytest.fixture
def joint(encoder):
    return randomise(build(encoder, "joint"))


@pytest.fixture
def folder(joint, tmp_path):
    joint.save_pretrained(tmp_path / "joint")
    tokenizer().save_pretrained(tmp_path / "joint")
    return tmp_path / "joint"


def gradients(scalar, module):
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    return dict(zip(trained, torch.autograd.grad(scalar, list(trained.values()), retain_graph=True), strict=True))


def the_same(found, wanted, rtol=1e-4, atol=1e-6):
    """`atol` counts in the largest number there is."""
    assert found.keys() == wanted.keys()
    largest = max(float(value.detach().abs().max()) for value in wanted.values())
    for name, value in wanted.items():
        torch.testing.assert_close(
            found[name], value, rtol=rtol, atol=atol * max(1.0, largest), msg=lambda text, name=name: f"{name}: {text}"
        )


# Each part.


@GAMES
@pytest.mark.parametrize("residual", [False, True])
def test_each_head_answers_as_it_would_alone(encoder, game, residual):
    together = randomise(build(encoder, "joint", game, residual=residual, classifier_layers=2))
    each = together(**inputs()).head_logits
    assert each.shape == (3, len(JOINT), 3)
    apart = (each[:, :, None] - each[:, None]).detach().abs().amax((0, 3))
    assert float(apart.fill_diagonal_(1).min()) > 1e-3  # no two are alike
    weights = torch.randn(3, 3)
    for place, head in enumerate(JOINT):
        alone = build(encoder, head, game if head == "neurogame" else {}, residual=residual, classifier_layers=2)
        parts = (
            (alone.model.encoder, together.model.encoder),
            (alone.model.pooling, together.model.pooling.each[place]),
            (alone.classifier, together.classifier.each[place]),
        )
        for own, whole in parts:
            own.load_state_dict(whole.state_dict())
        logits = alone(**inputs()).logits
        torch.testing.assert_close(each[:, place], logits, rtol=1e-5, atol=1e-5)
        for own, whole in parts:
            if list(own.parameters()):
                found, wanted = gradients((each[:, place] * weights).sum(), whole), (logits * weights).sum()
                the_same(found, gradients(wanted, own), atol=1e-5)


@GAMES
@pytest.mark.parametrize("more", [{}, {"residual": True, "classifier_layers": 2}], ids=str)
def test_a_part_answers_as_it_did_in_the_whole(encoder, game, more, tmp_path):
    whole = randomise(build(encoder, "joint", game, **more)).eval()
    wanted, before = whole(**inputs()), {name: value.clone() for name, value in whole.state_dict().items()}
    for place, head in enumerate(JOINT):
        part = whole.part(head)
        assert (part.config.head, part.config.id2label, part.training) == (head, whole.config.id2label, False)
        assert part.plays == (head == "neurogame")
        part.save_pretrained(tmp_path / head)
        part.model.encoder.get_input_embeddings().weight.data.zero_()  # its own, not the whole's
        again = AutoModelForSequenceClassification.from_pretrained(tmp_path / head)
        output = again(**inputs())
        torch.testing.assert_close(output.logits, wanted.head_logits[:, place], rtol=1e-5, atol=1e-5)
        assert output.head_logits is None
    assert whole.config.head == "joint"
    the_same(whole.state_dict(), before, rtol=0, atol=0)


def test_parts_that_there_are_not(joint, encoder):
    with pytest.raises(ValueError, match=r"head must be one of .*; got 'joint'"):
        joint.part("joint")
    with pytest.raises(ValueError, match="only a joint classifier has parts; this one has head 'mean'"):
        build(encoder, "mean").part("mean")


def test_no_head_reaches_the_parts_of_another(joint):
    each = joint(**inputs()).head_logits
    for place, head in enumerate(JOINT):
        joint.zero_grad()
        each[:, place].sum().backward(retain_graph=True)
        for other in range(len(JOINT)):
            parts = (joint.model.pooling.each[other], joint.classifier.each[other])
            moved = any(p.grad is not None and bool(p.grad.any()) for part in parts for p in part.parameters())
            assert moved == (other == place), (head, JOINT[other])


def test_it_is_made_of_heads_that_stand_alone():
    assert set(JOINT) < set(POOLING_HEADS)
    assert "joint" not in JOINT
    assert len(set(JOINT)) == len(JOINT)


# Their mean answer.


def test_the_answer_is_the_mean_of_the_probabilities(joint):
    output = joint(**inputs(), labels=LABELS)
    wanted = torch.stack([output.head_logits[:, place].softmax(-1) for place in range(len(JOINT))]).mean(0)
    torch.testing.assert_close(output.logits, wanted.log())
    torch.testing.assert_close(output.logits.exp().sum(-1), torch.ones(3))
    torch.testing.assert_close(output.logits.softmax(-1), wanted)
    of_the_answer = functional.cross_entropy(output.logits, LABELS)
    found = gradients(of_the_answer, joint)
    again = joint(**inputs()).head_logits.softmax(-1).mean(1)
    the_same(found, gradients(-again[torch.arange(3), LABELS].log().mean(), joint))


def test_the_loss_is_the_mean_of_theirs(joint):
    output = joint(**inputs(), labels=LABELS)
    wanted = torch.stack(
        [functional.cross_entropy(output.head_logits[:, place], LABELS) for place in range(len(JOINT))]
    )
    torch.testing.assert_close(output.loss, wanted.mean())


def test_the_mean_answer_of_sure_heads_is_finite():
    sure = torch.tensor([[[200.0, 0.0, -200.0], [-200.0, 0.0, 200.0]]], requires_grad=True)
    found = log_mean_probability(sure)
    torch.testing.assert_close(found.exp(), torch.tensor([[0.5, 0.0, 0.5]]))
    functional.cross_entropy(found, torch.tensor([1])).backward()
    assert bool(torch.isfinite(found).all())
    assert bool(torch.isfinite(sure.grad).all())
    logits = torch.randn(4, 1, 3)
    torch.testing.assert_close(log_mean_probability(logits), logits[:, 0].log_softmax(-1))  # of one head: its own
    assert log_mean_probability(logits.bfloat16()).dtype == torch.float32


def test_other_heads_have_no_parts(encoder):
    for head in ("neurogame", *JOINT):
        assert build(encoder, head)(**inputs()).head_logits is None


def test_mixup_mixes_each_of_the_vectors(joint):
    batch, order, weight = inputs(), torch.tensor([2, 0, 1]), torch.tensor(0.3)
    z = joint.model(**batch).pooler_output
    assert z.shape == (3, len(JOINT), 32)
    wanted = torch.stack([joint.classifier.each[h](0.3 * z[:, h] + 0.7 * z[order, h]) for h in range(len(JOINT))], 1)
    found = joint(**batch, mix=(order, weight))
    torch.testing.assert_close(found.head_logits, wanted)
    torch.testing.assert_close(found.logits, wanted.softmax(-1).mean(1).log())


# Files.


def test_saved_and_loaded_every_part_is_the_same(joint, folder):
    wanted = joint(**inputs())
    loaded = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    assert loaded.config.head == "joint"
    assert not loaded.plays
    found = loaded(**inputs())
    assert torch.equal(found.head_logits, wanted.head_logits)
    assert torch.equal(found.logits, wanted.logits)
    logits, each = loaded(**inputs(), return_dict=False)
    assert torch.equal(logits, wanted.logits)
    assert torch.equal(each, wanted.head_logits)
    weights = load_file(folder / "model.safetensors")
    del weights["classifier.each.3.1.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"missing keys: classifier\.each\.3\.1\.weight"):
        NeuroGameForSequenceClassification.from_pretrained(folder)


def test_probabilities_of_a_pipeline_and_of_predict(joint, folder):
    wanted = joint(**inputs()).head_logits.softmax(-1).mean(1)
    answers = pipeline("text-classification", model=str(folder))(
        [{"text": a, "text_pair": b} for a, b in PAIRS], top_k=None
    )
    for row, answer in enumerate(answers):
        scores = {item["label"]: item["score"] for item in answer}
        assert sum(scores.values()) == pytest.approx(1, abs=1e-5)
        assert [scores[name] for name in NLI] == pytest.approx(wanted[row].tolist(), abs=1e-5)
    model, tokens = load_classifier(str(folder))
    first, second = zip(*PAIRS, strict=True)
    found = predict(model, tokens, Texts(first, second), batch_size=2, progress=False)
    torch.testing.assert_close(found.logits.exp(), wanted, rtol=0, atol=1e-5)
    torch.testing.assert_close(found.logits.exp().sum(-1), torch.ones(3))
    assert found.ess is None


def test_scores_of_one_head_are_refused(joint):
    with pytest.raises(ValueError, match=r"with head='neurogame' or 'attention'; got .* with head='joint'"):
        LayerScores(MaskedClassifier(joint, tokenizer(), "attention"))


# The encoder of a classifier, under another head.


def dropouts(model):
    return {m.p for m in model.model.encoder.modules() if isinstance(m, nn.Dropout)}


@pytest.mark.parametrize("head", ["mean", "neurogame", "grounded", "joint"])
def test_the_encoder_of_a_classifier_under_a_fresh_head(encoder, joint, folder, head):
    model = build(folder, head, dropout=0.2)
    assert model.config.head == head
    the_same(dict(model.model.encoder.state_dict()), dict(joint.model.encoder.state_dict()), rtol=0, atol=0)
    batch = inputs()
    found, wanted = model.model(**batch).last_hidden_state, joint.model(**batch).last_hidden_state
    assert torch.equal(found, wanted)
    weights = torch.randn_like(wanted)
    the_same(
        gradients((found * weights).sum(), model.model.encoder),
        gradients((wanted * weights).sum(), joint.model.encoder),
    )
    fresh = build(encoder, head, dropout=0.2).state_dict()  # the same head, of the same seed, on the first encoder
    rest = {name: value for name, value in model.state_dict().items() if not name.startswith("model.encoder.")}
    assert all(torch.equal(value, fresh[name]) for name, value in rest.items())
    assert all(p.requires_grad for p in model.model.encoder.parameters())


def test_an_encoder_that_is_taken_over_has_its_own_dropout_or_another(joint, folder, tmp_path):
    assert dropouts(build(folder, "cls")) == {0.1}
    model = build(folder, "cls", encoder_dropout=0.3)
    assert dropouts(model) == {0.3}
    assert model.config.encoder.hidden_dropout_prob == 0.3
    model.save_pretrained(tmp_path / "again")
    again = NeuroGameForSequenceClassification.from_pretrained(tmp_path / "again")
    assert dropouts(again) == {0.3}
    assert str(tmp_path) not in (tmp_path / "again" / "config.json").read_text()
    assert torch.equal(again.eval().model(**inputs()).last_hidden_state, joint.model(**inputs()).last_hidden_state)


def test_a_classifier_in_half_precision_gives_a_full_encoder(joint, tmp_path):
    joint.half().save_pretrained(tmp_path / "half")
    model = build(tmp_path / "half", "cls")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    the_same(dict(model.model.encoder.state_dict()), dict(joint.float().model.encoder.state_dict()), rtol=0, atol=0)


def test_a_classifier_without_all_its_weights_gives_no_encoder(folder):
    weights = load_file(folder / "model.safetensors")
    del weights["model.encoder.encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"missing keys: model\.encoder\.encoder\.layer\.1\.output\.dense\.weight"):
        build(folder, "cls")
