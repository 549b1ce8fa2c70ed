"""Classes of models against classes of data."""

from types import SimpleNamespace

import pytest
import torch

from spinformer.data.texts import NLI_LABELS, Texts
from spinformer.evaluate.answers.class_mapping import class_names, map_classes
from spinformer.evaluate.answers.metrics import scores


def texts(labels, names):
    return Texts(["x"] * len(labels), ["y"] * len(labels), labels, names, source="data")


def test_same_names_in_another_order_and_case():
    mapping = map_classes(("CONTRADICTION", "Neutral", "entailment"), texts([0, 1, 2], NLI_LABELS))
    assert (mapping.rule, mapping.names, mapping.groups) == ("by name", NLI_LABELS, ((2,), (1,), (0,)))
    logits = torch.tensor([[0.1, 0.2, 3.0]])
    assert mapping.logits(logits).tolist() == logits.double().flip(1).tolist()
    assert mapping.predicted(logits).tolist() == [0]
    assert mapping.labels([2, 0]).tolist() == [2, 0]


@pytest.mark.parametrize(
    "names", [("entailment", "non-entailment"), ("not_entailment", "entailment"), ("Entailment", "Non Entailment")]
)
def test_hans(names):
    labels = [0, 1, 1]
    mapping = map_classes(("contradiction", "entailment", "neutral"), texts(labels, names))
    entailment = [name.lower() == "entailment" for name in names].index(True)
    assert mapping.rule == "two-class"
    assert mapping.names == names
    assert mapping.groups[entailment] == (1,)
    assert mapping.groups[1 - entailment] == (0, 2)
    assert mapping.labels(labels).tolist() == labels
    p = torch.tensor([[0.5, 0.2, 0.3]])
    assert mapping.logits(p.log()).softmax(1)[0, 1 - entailment].item() == pytest.approx(0.8)


def test_a_prediction_is_the_largest_of_the_models_classes():
    """entailment 0.42 against 0.29 twice: the usual mapping says entailment, though the others sum to 0.58."""
    mapping = map_classes(NLI_LABELS, texts([0, 1], ("entailment", "non-entailment")))
    logits = torch.tensor([[0.42, 0.29, 0.29], [0.2, 0.1, 0.7]]).log()
    assert mapping.predicted(logits).tolist() == [0, 1]
    result = scores(mapping.logits(logits), mapping.labels([0, 1]), mapping.names, predicted=mapping.predicted(logits))
    assert result.accuracy == 1
    assert result.bins[6].confidence == pytest.approx(0.42)


def test_monli_has_three_names_but_two_classes():
    mapping = map_classes(NLI_LABELS, texts([0, 1, 1], NLI_LABELS))
    assert (mapping.rule, mapping.names) == ("two-class", ("entailment", "non-entailment"))
    assert mapping.groups == ((0,), (1, 2))
    assert mapping.labels([0, 1, 1]).tolist() == [0, 1, 1]


def test_monli_with_two_names_and_a_model_of_two_classes():
    assert map_classes(NLI_LABELS, texts([1, 0], ("neutral", "entailment"))).labels([1, 0]).tolist() == [0, 1]
    assert map_classes(("not_entailment", "entailment"), texts([0, 1], NLI_LABELS)).groups == ((1,), (0,))


def test_one_class_alone_is_scored_by_name():
    assert map_classes(NLI_LABELS, texts([0, 0], NLI_LABELS)).rule == "by name"


def test_other_tasks_by_name():
    assert map_classes(("POSITIVE", "NEGATIVE"), texts([0, 1], ("negative", "positive"))).groups == ((1,), (0,))
    assert map_classes(("LABEL_0", "LABEL_1"), texts([0, 1], ("LABEL_0", "LABEL_1"))).rule == "by name"


@pytest.mark.parametrize(
    ("model", "names", "message"),
    [
        (("LABEL_0", "LABEL_1", "LABEL_2"), NLI_LABELS, "pass the model's label names"),
        (("positive", "negative"), NLI_LABELS, "expected the same names"),
        (NLI_LABELS, ("positive", "negative", "neutral"), "the model has the classes entailment, neutral"),
        (("entailment", "non-entailment"), NLI_LABELS, "expected the same names"),
        (("entailment", "other"), ("entailment", "non-entailment"), "expected the same names"),
    ],
)
def test_classes_that_do_not_fit(model, names, message):
    with pytest.raises(ValueError, match=message):
        map_classes(model, texts(list(range(len(names))), names))


def test_without_labels():
    with pytest.raises(ValueError, match="data has no labels to score against"):
        map_classes(NLI_LABELS, Texts(["x"], source="data"))
    with pytest.raises(ValueError, match="data has no rows"):
        map_classes(NLI_LABELS, Texts([], labels=[], names=NLI_LABELS, source="data"))


def test_class_names():
    def of(*names):
        return SimpleNamespace(config=SimpleNamespace(id2label=dict(enumerate(names))))

    assert class_names(of("b", "a")) == ("b", "a")
    assert class_names(of("LABEL_0", "LABEL_1"), ["x", "y"]) == ("x", "y")
    with pytest.raises(ValueError, match="the model has 2 classes; got 1 label names: x"):
        class_names(of("a", "b"), ["x"])
    with pytest.raises(ValueError, match="one output"):
        class_names(of("LABEL_0"))
    with pytest.raises(ValueError, match="different names"):
        class_names(of("a", "A"))
