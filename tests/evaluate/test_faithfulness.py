"""Comprehensiveness, sufficiency, leave-one-out, stability, cost: by hand on a toy, and what must not change them."""

import itertools
import math

import pytest
import torch

pytest.importorskip("transformers")

from spinformer.evaluate import Comprehensiveness, Cost, LeaveOneOutCorrelation, Stability, Sufficiency, Summary
from spinformer.evaluate.explanations.correlation import correlation, correlations, ranks
from spinformer.evaluate.explanations.faithfulness import top_words
from tests.evaluate import toy

TEXTS = ("man dog cat red", "a dog runs not two eats the cat", "man not", "dog")


def sigmoid(z):
    return 1 / (1 + math.exp(-z))


def drawn(decisions, seed=0):
    return torch.randn(decisions.mask.shape, generator=torch.Generator().manual_seed(seed))


def test_by_hand():
    decisions = toy.decisions("man dog cat red")
    assert decisions.target.tolist() == [0]
    assert decisions.confidence.item() == pytest.approx(sigmoid(3.5))
    scores = torch.tensor([[0.1, 0.4, 0.3, 0.2]])  # dog, cat, red, man
    without = [sigmoid(2.5), sigmoid(2.0)]
    alone = [sigmoid(1.0), sigmoid(1.5)]
    fractions = (0.25, 0.5)
    less, only = Comprehensiveness(fractions), Sufficiency(fractions)
    assert less.curve(decisions, scores)[0].tolist() == pytest.approx([sigmoid(3.5) - p for p in without], abs=1e-6)
    assert only.curve(decisions, scores)[0].tolist() == pytest.approx([sigmoid(3.5) - p for p in alone], abs=1e-6)
    assert less(decisions, scores).item() == pytest.approx(sigmoid(3.5) - sum(without) / 2, abs=1e-6)
    assert only(decisions, scores).item() == pytest.approx(sigmoid(3.5) - sum(alone) / 2, abs=1e-6)


def test_the_decided_class_counts():
    decisions = toy.decisions("not not man two")  # z = -0.3: the second class
    assert decisions.target.tolist() == [1]
    away = Comprehensiveness((0.5,))(decisions, torch.tensor([[1.0, 1.0, 0.0, 0.0]]))
    assert away.item() == pytest.approx(sigmoid(0.3) - sigmoid(-1.7), abs=1e-6)


@pytest.mark.parametrize(
    ("words", "fractions", "sizes"),
    [
        (20, (0.01, 0.05, 0.1, 0.2, 0.5), [1, 1, 2, 4, 10]),
        (7, (0.01, 0.05, 0.1, 0.2, 0.5), [1, 1, 1, 2, 4]),
        (100, (0.07, 0.29, 1.0), [7, 29, 100]),
        (1, (0.5, 1.0), [1, 1]),
    ],
)
def test_number_of_top_words(words, fractions, sizes):
    mask = torch.arange(words + 3)[None] < words
    chosen = top_words(torch.randn(1, words + 3), mask, fractions)
    assert chosen.sum(2).tolist() == [sizes]
    assert not chosen[..., words:].any()


def test_ties_go_to_the_earlier_word():
    mask = torch.ones(1, 40, dtype=torch.bool)
    assert top_words(torch.zeros(1, 40), mask, (0.1,))[0, 0].nonzero().flatten().tolist() == [0, 1, 2, 3]
    scores = torch.tensor([1.0, 2.0]).repeat(20)[None]
    assert top_words(scores, mask, (0.6,))[0, 0].nonzero().flatten().tolist() == sorted([*range(1, 40, 2), 0, 2, 4, 6])


def test_the_true_ranking_is_best():
    decisions = toy.decisions("man dog cat red")
    rankings = [torch.tensor([list(map(float, order))]) for order in itertools.permutations(range(4))]
    true = torch.tensor([[2.0, 1.0, 0.5, 0.0]])
    fractions = (0.25, 0.5, 0.75)
    for metric, best in ((Comprehensiveness(fractions), max), (Sufficiency(fractions), min)):
        assert metric(decisions, true).item() == best(metric(decisions, ranking).item() for ranking in rankings)
        worst = min if best is max else max
        assert metric(decisions, -true).item() == worst(metric(decisions, ranking).item() for ranking in rankings)


def test_only_the_order_of_scores_matters():
    decisions = toy.decisions(*TEXTS)
    scores = drawn(decisions)
    for metric in (Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()):
        torch.testing.assert_close(metric(decisions, scores), metric(decisions, 3 * scores.exp() - 7), equal_nan=True)


def test_padding_and_company_do_not_matter():
    decisions = toy.decisions(*TEXTS)
    scores = drawn(decisions)
    scores[~decisions.mask] = torch.nan
    for metric in (Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation(), LeaveOneOutCorrelation("pearson")):
        together = metric(decisions, scores)
        for row, text in enumerate(TEXTS):
            alone = toy.decisions(text)
            value = metric(alone, scores[row : row + 1, : len(text.split())])
            torch.testing.assert_close(value, together[row : row + 1], equal_nan=True, rtol=0, atol=1e-6)
        low, high = metric.bounds
        assert all(math.isnan(value) or low <= value <= high for value in together.tolist())


def test_words_and_scores_shuffled_together():
    words = TEXTS[1].split()
    scores = torch.randn(1, len(words))
    order = torch.randperm(len(words))
    decisions = toy.decisions(TEXTS[1])
    shuffled = toy.decisions(" ".join(words[index] for index in order))
    for metric in (Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()):
        torch.testing.assert_close(metric(decisions, scores), metric(shuffled, scores[:, order]), rtol=0, atol=1e-6)


def test_all_fractions_are_asked_at_once():
    decisions = toy.decisions(*TEXTS)
    Comprehensiveness()(decisions, drawn(decisions))  # the first time the classifier is tried for leaks
    passes, calls = decisions.classifier.passes, decisions.classifier.model.calls
    Comprehensiveness()(decisions, drawn(decisions))
    assert decisions.classifier.passes - passes == 5 * len(TEXTS)
    assert decisions.classifier.model.calls - calls == 1


def test_leave_one_out():
    decisions = toy.decisions(*TEXTS)
    drops = decisions.drops
    assert drops[0].tolist()[:4] == pytest.approx([sigmoid(3.5) - sigmoid(z) for z in (1.5, 2.5, 3.0, 3.5)], abs=1e-6)
    assert (drops[~decisions.mask] == 0).all()
    for kind in ("spearman", "pearson"):
        metric = LeaveOneOutCorrelation(kind)
        assert metric.name == f"leave_one_out_{kind}"
        for sign in (1, -1):
            value = metric(decisions, sign * drops)
            assert value[:2].tolist() == pytest.approx([sign, sign])
            assert value[2:].isnan().all()  # two words, one word
        assert metric(decisions, torch.ones_like(drops)).isnan().all()
    passes = decisions.classifier.passes
    LeaveOneOutCorrelation()(decisions, drops)
    assert decisions.classifier.passes == passes  # the drops are kept


def test_summary_counts_what_is_left_out():
    summary = Summary.of(torch.tensor([1.0, math.nan, 3.0, 2.0], dtype=torch.float64))
    assert summary == Summary(2.0, pytest.approx(1 / math.sqrt(3)), 3, 1)
    empty = Summary.of(torch.tensor([math.nan]))
    assert empty.to_dict() == {"mean": None, "stderr": None, "count": 0, "left_out": 1}
    assert Summary.of(torch.tensor([1.0])).to_dict()["stderr"] is None


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_correlations_of_rows_are_those_of_each_row(kind):
    """Ties, padding, short and constant rows among them."""
    draw = torch.Generator().manual_seed(4)
    first, second = (torch.randint(6, (40, 9), generator=draw).double() / 7 for _ in range(2))
    counts = torch.randint(1, 10, (40,), generator=draw)
    first[7] = 0.5
    first[torch.arange(9) >= counts[:, None]] = torch.nan  # padding may hold anything
    mask = torch.arange(9) < counts[:, None]
    rows = zip(first, second, mask, strict=True)
    expected = torch.tensor([correlation(a[real], b[real], kind) for a, b, real in rows], dtype=torch.float64)
    result = correlations(first, second, mask, kind)
    assert 5 < int(result.isnan().sum()) < 35
    torch.testing.assert_close(result, expected, equal_nan=True, rtol=0, atol=1e-12)


def test_correlations_against_scipy():
    stats = pytest.importorskip("scipy.stats")
    draw = torch.Generator().manual_seed(0)
    for count in (3, 5, 40):
        first = torch.randint(6, (count,), generator=draw).double()
        second = first + torch.randint(4, (count,), generator=draw)
        first[0], second[0] = 7, 11
        assert correlation(first, second, "spearman") == pytest.approx(stats.spearmanr(first, second).statistic)
        assert correlation(first, second, "pearson") == pytest.approx(stats.pearsonr(first, second).statistic)
        assert ranks(first).tolist() == stats.rankdata(first).tolist()
    mask = torch.tensor([[True, True, True, False]])
    a, b = torch.tensor([[1.0, 2.0, 3.0, math.nan]]), torch.tensor([[1.0, 3.0, 2.0, 9.0]])
    assert correlations(a, b, mask, "spearman").tolist() == pytest.approx([0.5])


def test_stability():
    decisions = toy.decisions(*TEXTS[:3])
    scores = [drawn(decisions, seed) for seed in range(3)]
    metric = Stability()
    value = metric(decisions, scores)
    pairs = [correlation(scores[s][1], scores[t][1], "spearman") for s, t in ((0, 1), (0, 2), (1, 2))]
    assert value[1].item() == pytest.approx(sum(pairs) / 3)
    assert value[2].isnan()
    assert metric(decisions, [scores[0], 2 * scores[0] + 1]).tolist()[:2] == pytest.approx([1, 1])
    torch.testing.assert_close(value, metric(decisions, scores[::-1]), equal_nan=True)
    with pytest.raises(ValueError, match="at least 2 seeds; got 1"):
        metric(decisions, scores[:1])


def test_cost():
    decisions = toy.decisions(*TEXTS)
    cost = Cost(decisions.classifier)
    for _ in range(2):
        with cost:
            decisions.values(decisions.mask[:, None].expand(-1, 3, -1))
    decisions.values(decisions.mask[:, None])
    assert cost.passes == 2 * 3 * len(TEXTS)
    assert 0 < cost.milliseconds < 10_000
    assert (cost.better, cost.bounds) == ("lower", (0, math.inf))


def test_declarations():
    assert [(m.name, m.better) for m in (Comprehensiveness(), Sufficiency())] == [
        ("comprehensiveness", "higher"),
        ("sufficiency", "lower"),
    ]


@pytest.mark.parametrize(
    ("scores", "kind", "message"),
    [
        (torch.zeros(1, 3), ValueError, r"scores must have shape \(1, 4\); got \(1, 3\)"),
        (torch.zeros(4), ValueError, "scores must have 2 dimensions"),
        (torch.zeros(1, 4, dtype=torch.long), TypeError, "floating-point numbers; got torch.int64"),
        (torch.tensor([[0.0, 1.0, math.nan, 2.0]]), ValueError, "1 of 4 elements are NaN"),
        ([[0.0] * 4], TypeError, "scores must be a torch.Tensor; got list"),
    ],
)
def test_bad_scores(scores, kind, message):
    for metric in (Comprehensiveness(), LeaveOneOutCorrelation()):
        with pytest.raises(kind, match=message):
            metric(toy.decisions(TEXTS[0]), scores)


def test_bad_settings():
    for fractions in ((), (0.0,), (0.5, 1.5), (math.nan,)):
        with pytest.raises(ValueError, match="each above 0 and at most 1"):
            Sufficiency(fractions)
    with pytest.raises(ValueError, match="kind must be one of 'spearman', 'pearson'; got 'kendall'"):
        LeaveOneOutCorrelation("kendall")
    with pytest.raises(ValueError, match="rows must be 1 numbers, one for each text; got 2"):
        toy.decisions("man", rows=[0, 1])
