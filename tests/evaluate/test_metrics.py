"""Scores by hand, against scikit-learn, and what must not change them."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spinformer.evaluate.answers.metrics import (
    Bin,
    confusion_matrix,
    expected_calibration_error,
    macro_f1,
    negative_log_likelihood,
    per_class,
    reliability_bins,
    scores,
    wilson,
)

NAMES = ("a", "b", "c")


def drawn(seed=0, rows=200, classes=3, gold=None):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(gold or classes, (rows,), generator=draw)
    return torch.randn(rows, classes, generator=draw), labels


def test_wilson_against_known_values():
    # Newcombe (1998), Statistics in Medicine 17, Table I, method 3: 81/263, 15/148, 0/20, 1/29
    for right, count, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (1, 29, 0.0061, 0.1718)):
        assert wilson(right, count) == pytest.approx((low, high), abs=5e-5)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(20, 20) == pytest.approx((0.8389, 1.0), abs=5e-5)
    with pytest.raises(ValueError, match="got 3 of 2"):
        wilson(3, 2)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_wilson_holds_the_share_and_mirrors(count, share):
    right = round(share * count)
    low, high = wilson(right, count)
    assert 0 <= low <= right / count <= high <= 1
    assert wilson(count - right, count) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("seed", "gold"), [(0, 3), (1, 3), (2, 2), (3, 1)])
def test_against_scikit_learn(seed, gold):
    sklearn = pytest.importorskip("sklearn.metrics")
    logits, labels = drawn(seed, gold=gold)
    result = scores(logits, labels, NAMES)
    given = logits.argmax(1)
    occurring = sorted(set(labels.tolist()))
    assert result.accuracy == pytest.approx(sklearn.accuracy_score(labels, given))
    assert result.macro_f1 == pytest.approx(
        sklearn.f1_score(labels, given, labels=occurring, average="macro", zero_division=0)
    )
    table = sklearn.precision_recall_fscore_support(labels, given, labels=[0, 1, 2], zero_division=0)
    ours = [[getattr(row, key) for row in result.classes] for key in ("precision", "recall", "f1", "support")]
    np.testing.assert_allclose(ours, table)
    np.testing.assert_array_equal(result.confusion, sklearn.confusion_matrix(labels, given, labels=[0, 1, 2]))
    p = logits.double().softmax(1).numpy()
    assert result.nll == pytest.approx(sklearn.log_loss(labels, p, labels=[0, 1, 2]))


def test_macro_f1_leaves_out_classes_that_never_occur():
    matrix = confusion_matrix([0, 0, 1, 1], [0, 2, 1, 1], 3)
    assert matrix.tolist() == [[1, 0, 1], [0, 2, 0], [0, 0, 0]]
    assert macro_f1(matrix) == pytest.approx((2 / 3 + 1) / 2)
    last = per_class(matrix, NAMES)[2]
    assert (last.precision, last.recall, last.f1, last.support, last.predicted) == (0, 0, 0, 0, 1)


def test_calibration_by_hand():
    # 0.62 and 0.66 lie in (9/15, 10/15]; 0.95 in (14/15, 1]
    bins = reliability_bins([0.62, 0.66, 0.95], [True, False, True])
    assert [index for index, one in enumerate(bins) if one.count] == [9, 14]
    assert bins[9].count == 2
    assert (bins[9].confidence, bins[9].accuracy) == pytest.approx((0.64, 0.5))
    assert expected_calibration_error(bins) == pytest.approx((2 * 0.14 + 0.05) / 3)


def test_bins_hold_their_upper_edge():
    bins = reliability_bins([0.0, 1 / 15, 2 / 15, 1.0], [1, 1, 1, 1])
    assert [one.count for one in bins] == [2, 1, *[0] * 12, 1]
    assert bins[2] == Bin(2 / 15, 3 / 15, 0, 0.0, 0.0)


def test_negative_log_likelihood_by_hand():
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    assert negative_log_likelihood(logits, [0, 1]) == pytest.approx(-(math.log(0.5) + math.log(0.1)) / 2)


def test_far_logits_stay_finite():
    result = scores([[1e4, -1e4], [-1e4, 1e4]], [0, 0], ("a", "b"))
    assert result.nll == pytest.approx(1e4)
    assert result.ece == pytest.approx(0.5)


def test_the_largest_logit_decides_where_probabilities_round_to_equal():
    logits = torch.tensor([[0.0, 1e-98], [1e9, 1e9 + 1]], dtype=torch.float64)
    assert scores(logits, [1, 1], ("a", "b")).confusion == ((0, 0), (0, 2))


def test_numpy_and_torch_and_json_agree():
    logits, labels = drawn()
    result = scores(logits, labels, NAMES)
    assert scores(logits.numpy(), labels.numpy(), NAMES) == result
    record = json.loads(json.dumps(result.to_dict()))
    assert record["interval"] == list(result.interval)
    assert record["classes"][0]["f1"] == result.classes[0].f1
    assert sum(map(sum, record["confusion"])) == record["count"] == 200


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(2, 5), st.floats(-50, 50))
def test_order_names_and_shifts_do_not_matter(seed, rows, classes, shift):
    logits, labels = drawn(seed, rows, classes)
    names = [str(index) for index in range(classes)]
    result = scores(logits, labels, names)
    keys = ("accuracy", "macro_f1", "ece", "nll")
    numbers = [getattr(result, key) for key in keys]
    draw = torch.Generator().manual_seed(seed)
    order, turn = torch.randperm(rows, generator=draw), torch.randperm(classes, generator=draw)
    shuffled = scores(logits[order], labels[order], names)
    renamed = scores(logits[:, turn], turn.argsort()[labels], [names[index] for index in turn])
    moved = scores(logits.double() + shift, labels, names)
    for other in (shuffled, renamed, moved):
        assert [getattr(other, key) for key in keys] == pytest.approx(numbers, abs=1e-9)
    assert shuffled.confusion == result.confusion
    assert {row.name: row.f1 for row in renamed.classes} == {row.name: row.f1 for row in result.classes}
    assert 0 <= result.ece <= 1
    assert sum(one.count for one in result.bins) == rows
    assert result.interval[0] <= result.accuracy <= result.interval[1]


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ([[1.0, 2.0]], [0, 1], "labels must be 1 integers"),
        ([[1.0, 2.0]], [2], "labels must be from 0 to 1; got 2 to 2"),
        ([[1.0, float("nan")]], [0], "1 are NaN or infinite"),
        ([[1.0, 2.0, 3.0]], [0], "a column for each of the 2 classes"),
        (torch.empty(0, 2), [], "N at least 1"),
    ],
)
def test_bad_input(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        scores(logits, labels, ("a", "b"))
