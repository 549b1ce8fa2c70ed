"""Laws of the metrics of explanations, on a toy whose confidence is a known function of the words it sees."""

import math
from functools import lru_cache

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score

from spinformer.data import Texts, split_words
from spinformer.data.highlights import Highlights
from spinformer.evaluate import (
    Agreement,
    Comprehensiveness,
    Cost,
    Decisions,
    Difference,
    Fit,
    GameFit,
    HighlightAgreement,
    InteractionAgreement,
    LeaveOneOutCorrelation,
    Metric,
    Stability,
    Sufficiency,
    Summary,
    Table,
    compare,
    decide,
)
from spinformer.explain.methods.chance import RandomScores
from spinformer.explain.methods.occlusion import LeaveOneOut
from spinformer.games import exact_values
from spinformer.models.masked import ConfidenceGame
from tests.evaluate import toy
from tests.properties.cases import assert_near, generator, law, numbers, seeds

known = st.lists(st.sampled_from(sorted(toy.WEIGHTS)), min_size=1, max_size=5, unique=True)
rows = st.lists(known.map(" ".join), min_size=1, max_size=3)
fractions = st.lists(st.floats(0.01, 1), min_size=1, max_size=3)
values = st.lists(st.floats(-100, 100) | st.just(math.nan), max_size=12)


@lru_cache(maxsize=1)
def classifier():
    return toy.classifier(pairs={("man", "dog"): -1.5, ("red", "cat"): 2.0})


def decisions(texts: list[str]) -> Decisions:
    return decide(classifier(), split_words(classifier().tokenizer, Texts(texts), 64))


@law("evaluate.decide", "evaluate.Decisions", share=10, texts=rows, seed=seeds)
def test_decisions_are_the_classifiers_own(texts, seed):
    """Class and confidence of full texts; values of parts; each text apart as among others."""
    found = decisions(texts)
    shares = classifier().full_probabilities(found.words).double()
    assert torch.equal(found.target, shares.argmax(1))
    assert_near(found.confidence, shares.amax(1), 1e-6)
    width = found.mask.shape[1]
    coalitions = (torch.rand(len(texts), 4, width, generator=generator(seed)) < 0.5) & found.mask[:, None]
    values = found.values(coalitions)
    for row, one in enumerate(found.apart):
        assert (len(one), one.rows) == (1, (row,))
        assert_near(one.values(coalitions[row : row + 1, :, : one.mask.shape[1]]), values[row : row + 1], 1e-6)
        game = found.game(row)
        assert isinstance(game, ConfidenceGame)
        assert_near(game(coalitions[row, :, : one.mask.shape[1]])[0], values[row], 1e-6)
    single = torch.eye(width, dtype=torch.bool)
    drops = found.confidence[:, None] - found.values(found.mask[:, None] & ~single)
    assert_near(found.drops, drops * found.mask, 1e-6, size=1)


@law(
    "evaluate.Comprehensiveness",
    "evaluate.Sufficiency",
    "evaluate.Metric",
    share=10,
    texts=rows,
    parts=fractions,
    seed=seeds,
)
def test_what_is_lost_without_the_top_words_and_with_them_alone(texts, parts, seed):
    """By their definitions; at the fraction 1 nothing is left, or nothing is lost."""
    found = decisions(texts)
    scores = numbers("normal", seed, *found.mask.shape)
    without, alone = Comprehensiveness([*parts, 1.0]), Sufficiency([*parts, 1.0])
    assert isinstance(without, Metric)
    nothing = found.confidence - found.values(torch.zeros_like(found.mask)[:, None])[:, 0]
    assert_near(without.curve(found, scores)[:, -1], nothing, 1e-6, size=1)
    assert_near(alone.curve(found, scores)[:, -1], torch.zeros(len(texts)), 1e-6, size=1)
    for row, text in enumerate(texts):
        count = len(text.split())
        order = scores[row, :count].argsort(descending=True)
        for column, part in enumerate(parts):
            top = torch.zeros(1, 1, found.mask.shape[1], dtype=torch.bool)
            top[0, 0, order[: max(1, math.ceil(part * count - 1e-9))]] = True
            for metric, seen in ((without, found.mask[row] & ~top), (alone, top)):
                expected = found.confidence[row] - found.values(seen.expand(len(texts), 1, -1))[row, 0]
                assert_near(metric.curve(found, scores)[row, column], expected, 1e-6, size=1)
    assert_near(without(found, scores), without.curve(found, scores).mean(1), 1e-9)
    assert bool(((without(found, scores) >= -1) & (without(found, scores) <= 1)).all())


@law(
    "evaluate.LeaveOneOutCorrelation",
    "evaluate.Stability",
    share=10,
    texts=rows,
    kind=st.sampled_from(["spearman", "pearson"]),
    seed=seeds,
)
def test_correlations(texts, kind, seed):
    """1 with themselves, -1 turned round; for fewer than three words, or equal ones, not defined."""
    found = decisions(texts)
    metric = LeaveOneOutCorrelation(kind)
    one, other = metric(found, found.drops), metric(found, -3 * found.drops)
    noise = [numbers("normal", seed + k, *found.mask.shape) for k in range(2)]
    stable, mixed = Stability()(found, [noise[0], 2 * noise[0]]), Stability()(found, noise)
    for row, text in enumerate(texts):
        count = len(text.split())
        varied = len(set(found.drops[row, :count].tolist())) > 1
        defined = count >= 3 and varied
        assert math.isnan(one[row]) != defined
        if defined:
            assert (one[row], other[row]) == (pytest.approx(1), pytest.approx(-1))
        if count >= 3:
            assert stable[row] == pytest.approx(1)
            assert mixed[row] == pytest.approx(spearmanr(noise[0][row, :count], noise[1][row, :count]).statistic)


@law(
    "evaluate.GameFit",
    "evaluate.Fit",
    "evaluate.InteractionAgreement",
    "evaluate.Agreement",
    share=6,
    texts=rows,
    budget=st.integers(2, 9),
    seed=st.integers(0, 99),
)
def test_the_classifiers_own_game_fits(texts, budget, seed):
    """R squared 1 and correlation 1 of its own game and interactions; a constant explains nothing."""
    found = decisions(texts)
    game = ConfidenceGame(classifier(), found.words, found.target)
    fit = GameFit(budget, seed)(found, game)
    assert isinstance(fit, Fit)
    assert fit.real.shape == (len(texts), budget)
    assert_near(fit.predicted, fit.real, 1e-6)
    if float(fit.real.std()) > 1e-3:
        assert fit.pooled == pytest.approx(1, abs=1e-3)
        assert Fit(fit.real.mean().expand_as(fit.real), fit.real).pooled == pytest.approx(0, abs=1e-9)
    joined = Fit.join([fit, fit])
    assert (len(joined.real), joined.to_dict()["texts"]) == (2 * len(texts), 2 * len(texts))
    metric = InteractionAgreement()
    real = metric.real(found)
    agreement = metric(found, game, real)
    assert isinstance(agreement, Agreement)
    for row, text in enumerate(texts):
        if len(text.split()) > 1:
            assert_near(
                real[row][: len(text.split()), : len(text.split())],
                exact_values(found.game(row), "BII")[0],
                1e-6,
                size=1,
            )
    assert sum(map(len, agreement.real)) == sum(len(text.split()) * (len(text.split()) - 1) // 2 for text in texts)
    for kind in ("spearman", "pearson"):
        value = agreement.pooled(kind)
        assert math.isnan(value) or value == pytest.approx(1, abs=1e-3) or float(torch.cat(agreement.real).std()) < 1e-6
    assert Agreement.join([agreement, agreement]).to_dict()["texts"] == 2 * len(texts)


@law("evaluate.HighlightAgreement", share=8, texts=rows, seed=seeds)
def test_agreement_with_highlights_is_average_precision(texts, seed):
    """scikit-learn's, where some words are marked and others not."""
    given, draw = Texts(texts, ["eats"] * len(texts)), generator(seed)
    found = decide(classifier(), split_words(classifier().tokenizer, given, 64))
    marked = [torch.rand(len(text.split()), generator=draw) < 0.5 for text in texts]
    for mark in marked:
        mark[int(torch.randint(len(mark), (), generator=draw))] = True
    spans = []
    for text, mark in zip(texts, marked, strict=True):
        words = text.split()
        starts = [len(" ".join(words[:place])) + (place > 0) for place in range(len(words))]
        chosen = [(start, start + len(word)) for start, word, one in zip(starts, words, mark, strict=True) if one]
        spans.append((tuple(chosen), ()))  # of the first text, none of the second
    scores = numbers("whole", seed, *found.mask.shape)
    metric = HighlightAgreement(Highlights(given, tuple(spans), unmarked=0))
    for row, value in enumerate(metric(found, scores).tolist()):
        labels = [*marked[row].tolist(), False]
        assert value == pytest.approx(average_precision_score(labels, scores[row, : len(labels)]))


@law("evaluate.Summary", share=12, numbers=values)
def test_summaries_are_numpys(numbers):
    found = Summary.of(torch.tensor(numbers, dtype=torch.float64))
    defined = [one for one in numbers if not math.isnan(one)]
    assert (found.count, found.left_out) == (len(defined), len(numbers) - len(defined))
    if defined:
        assert found.mean == pytest.approx(np.mean(defined), abs=1e-9)
    if len(defined) > 1:
        assert found.stderr == pytest.approx(np.std(defined, ddof=1) / len(defined) ** 0.5, abs=1e-9)
    assert (found.to_dict()["mean"] is None) == (not defined)


@law(
    "evaluate.compare",
    "evaluate.Table",
    "evaluate.Difference",
    "evaluate.Cost",
    share=4,
    texts=st.lists(known.map(" ".join), min_size=2, max_size=4),
    chunk=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_comparisons(texts, chunk, seed):
    """A table does not depend on the chunks; a difference is that of the means, and turns round with its methods."""
    scorers = [LeaveOneOut(classifier()), RandomScores(seed)]
    tables = [
        compare(scorers, classifier(), Texts(texts), chunk=size, progress=False, seeds=(seed, seed + 1))
        for size in (chunk, 5)
    ]
    for name in ("leave-one-out", "random"):
        for metric in ("comprehensiveness", "sufficiency"):
            one, other = (table.values[name][metric] for table in tables)
            assert_near(one, other, 1e-6, size=1)
            assert tables[0].summary(name, metric).mean == pytest.approx(float(one.mean()))
    table = tables[0]
    assert isinstance(table, Table)
    up, down = (
        table.difference("sufficiency", *pair, draws=50)
        for pair in (("random", "leave-one-out"), ("leave-one-out", "random"))
    )
    assert isinstance(up, Difference)
    assert (up.mean, up.count) == (pytest.approx(-down.mean), len(texts))
    assert up.low <= up.mean + 1e-9 and up.high >= up.mean - 1e-9  # noqa: PT018
    words = sum(len(text.split()) for text in texts)
    assert table.costs["leave-one-out"].passes == pytest.approx((words + len(texts)) / len(texts))
    assert table.costs["random"].passes == 0
    assert set(table.to_dict()["methods"]) == {"leave-one-out", "random"}
    with Cost(classifier()) as cost:
        decisions(texts)
    assert cost.passes == len(texts)
    assert cost.milliseconds > 0
