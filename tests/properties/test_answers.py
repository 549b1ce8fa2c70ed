"""Laws of a classifier's scores: against scikit-learn, whatever the batch, by the names of the classes."""

import math

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score
from torch.nn import functional

from spinformer.data import Texts
from spinformer.evaluate import (
    ClassMapping,
    Evaluation,
    GameDiagnostics,
    Predictions,
    Scores,
    class_names,
    evaluate,
    map_classes,
    predict,
    scores,
)
from spinformer.models import NeuroGameConfig, NeuroGameForSequenceClassification
from tests import tiny
from tests.properties.cases import assert_near, generator, law, numbers, seeds
from tests.properties.models import classifier, pairs, tokenizer

NAMES = ("a", "b", "c", "d")


@law(
    "evaluate.scores",
    "evaluate.Scores",
    share=20,
    rows=st.integers(1, 30),
    classes=st.integers(2, 4),
    sure=st.floats(0, 30),
    seed=seeds,
)
def test_scores_are_those_of_scikit_learn(rows, classes, sure, seed):
    logits = sure * numbers("normal", seed, rows, classes)
    gold = torch.randint(classes, (rows,), generator=generator(seed))
    found = scores(logits, gold, NAMES[:classes])
    assert isinstance(found, Scores)
    given, everyone = logits.argmax(1), range(classes)
    assert found.accuracy == pytest.approx(accuracy_score(gold, given))
    assert np.array_equal(found.confusion, confusion_matrix(gold, given, labels=everyone))
    occurring = sorted(set(gold.tolist()))
    assert found.macro_f1 == pytest.approx(f1_score(gold, given, labels=occurring, average="macro", zero_division=0))
    assert found.nll == pytest.approx(float(functional.cross_entropy(logits, gold)), rel=1e-9, abs=1e-12)
    low, high = found.interval
    assert 0 <= low <= found.accuracy <= high <= 1
    shares = logits.softmax(1).amax(1)
    assert 0 <= found.ece <= 1
    assert sum(one.count for one in found.bins) == rows == found.count
    assert sum(one.count * one.confidence for one in found.bins) == pytest.approx(float(shares.sum()), rel=1e-9)
    for one in found.classes:
        assert one.f1 == pytest.approx(
            2 * one.precision * one.recall / max(one.precision + one.recall, 1e-300), abs=1e-12
        )
    plain = found.to_dict()
    assert plain["accuracy"] == found.accuracy
    order = torch.randperm(rows, generator=generator(seed))
    moved = scores(logits[order], gold[order].tolist(), NAMES[:classes])
    assert moved.confusion == found.confusion
    assert moved.ece == pytest.approx(found.ece, abs=1e-9)
    shifted = scores((logits + 7).numpy(), gold.numpy(), NAMES[:classes])
    assert shifted.nll == pytest.approx(found.nll, abs=1e-6)


@law(
    "evaluate.map_classes",
    "evaluate.ClassMapping",
    "evaluate.class_names",
    share=15,
    order=st.permutations(tiny.NLI),
    upper=st.booleans(),
    data=st.sampled_from(["all", "two", "half"]),
    seed=seeds,
)
def test_classes_are_mapped_by_their_names(order, upper, data, seed):
    """In any order and case; probabilities of the others are summed where there are two classes."""
    model = [name.upper() if upper else name for name in order]
    names = {"all": tiny.NLI, "half": tiny.NLI, "two": ("entailment", "non-entailment")}[data]
    labels = {"all": [0, 1, 2], "half": [0, 1, 0], "two": [0, 1, 1]}[data]
    mapping = map_classes(model, Texts(["x"] * 3, None, labels, names))
    assert isinstance(mapping, ClassMapping)
    logits = numbers("normal", seed, 4, 3)
    shares = logits.softmax(1)
    entailment = order.index("entailment")
    if data == "all":
        assert mapping.rule == "by name"
        expected = shares[:, [order.index(name) for name in tiny.NLI]]
        assert torch.equal(mapping.labels(labels), torch.tensor(labels))
    else:
        assert mapping.rule == "two-class"
        expected = torch.stack([shares[:, entailment], 1 - shares[:, entailment]], 1)
        assert mapping.labels(labels).tolist() == [0, 1, int(data == "two")]
    assert_near(mapping.logits(logits).softmax(1), expected, 1e-9)
    right = logits.argmax(1) == entailment
    if data != "all":
        assert torch.equal(mapping.predicted(logits) == 0, right)
    assert class_names(classifier()) == tiny.NLI
    assert class_names(classifier(), order) == tuple(order)


@law(
    "evaluate.predict",
    "evaluate.Predictions",
    "evaluate.evaluate",
    "evaluate.Evaluation",
    share=8,
    rows=st.lists(pairs, min_size=1, max_size=6),
    batch=st.integers(1, 7),
    length=st.integers(6, 40),
    training=st.booleans(),
    seed=seeds,
)
def test_predictions_do_not_depend_on_the_batch(rows, batch, length, training, seed):
    """Nor on the order; the model stays in its mode; an evaluation is the scores of the predictions."""
    model, options = classifier(), {"progress": False, "max_length": length}
    first, second = ([row[side] for row in rows] for side in (0, 1))
    labels = torch.randint(3, (len(rows),), generator=generator(seed)).tolist()
    texts = Texts(first, second, labels, tiny.NLI)
    model.train(training)
    try:
        found = predict(model, tokenizer(), texts, batch_size=batch, **options)
        assert model.training == training
    finally:
        model.eval()
    assert isinstance(found, Predictions)
    assert found.logits.shape == (len(rows), 3)
    order = torch.randperm(len(rows), generator=generator(seed)).tolist()
    moved = predict(model, tokenizer(), texts.select(order), batch_size=3, **options)
    assert_near(moved.logits, found.logits[order], 1e-4, size=1)
    sizes = [len(one.split()) + len(other.split()) + 3 for one, other in rows]
    assert found.truncated == sum(size > length for size in sizes) == moved.truncated
    judged = evaluate(model, tokenizer(), texts, batch_size=batch, **options)
    assert isinstance(judged, Evaluation)
    assert (judged.count, judged.game, judged.rule) == (
        len(rows),
        None,
        "two-class" if set(labels) == {0, 1} else "by name",
    )
    if judged.rule == "by name":
        assert judged.scores == scores(found.logits, labels, tiny.NLI)
    assert judged.to_dict()["count"] == len(rows)


@law(
    "evaluate.GameDiagnostics",
    "evaluate.evaluate",
    share=2,
    rows=st.lists(pairs, min_size=2, max_size=4),
    seed=st.integers(0, 3),
)
def test_a_layer_says_how_far_to_trust_it(rows, seed):
    config = NeuroGameConfig(
        encoder=tiny.bert(),
        num_labels=3,
        id2label=dict(enumerate(tiny.NLI)),
        label2id={name: k for k, name in enumerate(tiny.NLI)},
        game={"eval_samples": 6},
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = NeuroGameForSequenceClassification(config).eval()
    first, second = ([row[side] for row in rows] for side in (0, 1))
    labels = [place % 3 for place in range(len(rows))]
    judged = evaluate(model, tokenizer(), Texts(first, second, labels, tiny.NLI), progress=False)
    game = judged.game
    assert isinstance(game, GameDiagnostics)
    assert 0 < game.ess_min <= game.ess_mean <= 6.001
    assert 0 <= game.converged <= 1
    assert 0 <= game.residual_mean <= game.residual_max
    assert math.isfinite(judged.scores.nll)
