"""Methods compared: each value is the metric's own, whatever the chunks; intervals of differences; errors."""

import json
import math

import pytest
import torch

pytest.importorskip("transformers")

from spinformer.data.highlights import Highlights
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.evaluate import (
    Comprehensiveness,
    HighlightAgreement,
    LeaveOneOutCorrelation,
    Sufficiency,
    Table,
    compare,
    decide,
)
from spinformer.evaluate.explanations.comparison import CostPerText
from tests import tiny
from tests.evaluate import toy

DRAW = torch.Generator().manual_seed(0)
TEXTS = toy.as_texts(
    [
        " ".join(tiny.WORDS[index] for index in torch.randint(14, (length,), generator=DRAW))
        for length in torch.randint(1, 12, (30,), generator=DRAW).tolist()
    ]
)


class LeaveOneOut:
    name = "leave-one-out"
    passes = "W + 1"

    def __init__(self, classifier):
        self.classifier = classifier

    def __call__(self, words, target=None):
        return decide(self.classifier, words).drops.float()


class Random:
    """Scores that depend on the words and the seed alone, not on the chunk."""

    def __init__(self, seed=0):
        self.name, self.passes, self.seed = "random", "0", seed

    def seeded(self, seed):
        return Random(seed)

    def __call__(self, words, target=None):
        scores = torch.full(words.mask.shape, torch.nan)
        for row, text in enumerate(words.words):
            draw = torch.Generator().manual_seed(self.seed * 1000 + sum(map(len, text)))
            scores[row, : len(text)] = torch.rand(len(text), generator=draw)
        return scores


@pytest.fixture(scope="module")
def classifier():
    return toy.classifier()


@pytest.fixture(scope="module")
def table(classifier):
    metrics = [Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()]
    scorers = [LeaveOneOut(classifier), Random()]
    return compare(scorers, classifier, TEXTS, metrics, seeds=(0, 1, 2), chunk=7, progress=False)


def test_values_are_the_metrics_own(table, classifier):
    decisions = decide(classifier, split_words(classifier.tokenizer, TEXTS, 128))
    for scorer in (LeaveOneOut(classifier), Random()):
        for metric in (Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()):
            expected = metric(decisions, scorer(decisions.words))
            torch.testing.assert_close(
                table.values[scorer.name][metric.name], expected, equal_nan=True, rtol=0, atol=1e-5
            )


def test_leave_one_out_beats_random(table):
    better = table.difference("comprehensiveness", "leave-one-out", "random")
    assert 0 < better.low < better.mean < better.high
    assert better.count == 30
    assert table.difference("sufficiency", "leave-one-out", "random").high < 0
    short = sum(len(text.split()) < 3 for text in TEXTS.first)
    summary = table.summary("leave-one-out", "leave_one_out_spearman")
    assert summary.mean == pytest.approx(1)
    assert summary.left_out >= short > 0
    assert summary.count + summary.left_out == 30


def test_stability_is_for_methods_with_seeds(table):
    assert table.summary("leave-one-out", "stability").count == 0
    assert table.summary("random", "stability").count > 0
    assert abs(table.summary("random", "stability").mean) < 0.4


def test_cost_is_the_methods_alone(table):
    assert table.costs["random"].passes == 0
    assert table.costs["leave-one-out"].milliseconds > 0
    words = sum(len(text.split()) for text in TEXTS.first) / 30
    assert 1 + words <= table.costs["leave-one-out"].passes < 1 + 2 * words  # and the padding of chunks


def test_record_and_text(table):
    record = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert (record["source"], record["texts"]) == ("memory", 30)
    assert record["metrics"]["sufficiency"] == {"better": "lower", "bounds": [-1.0, 1.0]}
    cell = record["methods"]["random"]["comprehensiveness"]
    assert cell["count"] == 30
    assert cell["mean"] == pytest.approx(table.summary("random", "comprehensiveness").mean)
    assert record["methods"]["leave-one-out"]["stability"]["mean"] is None
    lines = str(table).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("method         comprehensiveness (higher)")
    assert f"{cell['mean']:.3f} ± {cell['stderr']:.3f} (n = 30)" in lines[2]


def test_defaults(classifier):
    table = compare([Random()], classifier, TEXTS.select([0, 1]))
    assert list(table.metrics) == ["comprehensiveness", "sufficiency"]


def test_highlights_follow_their_texts(classifier):
    texts = Texts(("a dog", "the red cat sleeps", "two man runs"), ("man", "woman eats", "red"))
    spans = (((2, 5),), ()), (((4, 7),), ()), (((4, 7),), ())  # dog, red, man: the second word of each

    class Second:
        name = "second"
        passes = "0"

        def __call__(self, words, target=None):
            return (torch.arange(words.mask.shape[1]) == 1).float().expand(words.mask.shape)

    table = compare([Second()], classifier, texts, [HighlightAgreement(Highlights(texts, spans, 0))], chunk=2)
    assert table.values["second"]["highlight_agreement"].tolist() == [1, 1, 1]


class Choosy(Random):
    """Cannot do texts of more than `most` words."""

    def __init__(self, most, seed=0):
        super().__init__(seed)
        self.name, self.most, self.calls = "choosy", most, 0

    def seeded(self, seed):
        return Choosy(self.most, seed)

    def __call__(self, words, target=None):
        for text in words.words:
            if len(text) > self.most:
                raise ValueError(f"a text of {len(text)}\n words needs more; got {self.most}")
        return super().__call__(words, target)


def test_a_text_that_a_method_cannot_do_costs_that_text(classifier):
    counts = [len(text.split()) for text in TEXTS.first]
    most = sorted(counts)[20]
    out = [row for row, count in enumerate(counts) if count > most]
    table = compare([Choosy(most), Random()], classifier, TEXTS, seeds=(0, 1), chunk=7, progress=False)
    for metric in ("comprehensiveness", "stability"):
        own, other = table.values["choosy"][metric], table.values["random"][metric]
        assert own[out].isnan().all()
        done = [row for row in range(30) if row not in out]
        torch.testing.assert_close(own[done], other[done], equal_nan=True, rtol=0, atol=1e-6)
    assert table.left_out["choosy"].count == len(out)
    assert set(table.left_out) == {"choosy"}
    record = table.to_dict()["methods"]
    longest = max(counts)
    assert record["choosy"]["left_out"]["count"] == len(out)
    assert record["choosy"]["comprehensiveness"]["left_out"] == len(out)
    assert record["choosy"]["left_out"]["reason"] == f"a text of {longest} words needs more; got {most}"
    assert "left_out" not in record["random"]
    assert f"choosy: {len(out)} texts left out: a text of {longest} words needs more" in str(table)


def test_a_method_that_can_do_no_text_says_why(classifier):
    table = compare([Random(), Choosy(0)], classifier, TEXTS.select([0, 1, 2]), progress=False)
    row = json.loads(json.dumps(table.to_dict(), allow_nan=False))["methods"]["choosy"]
    assert row["left_out"]["count"] == 3
    assert row["passes"] is row["milliseconds"] is row["comprehensiveness"]["mean"] is None
    assert "choosy: 3 texts left out: a text of" in str(table)
    assert table.summary("random", "comprehensiveness").count == 3


def test_scores_that_are_not_finite_cost_their_text(classifier):
    class Odd(Random):
        def __call__(self, words, target=None):
            scores = super().__call__(words, target)
            return torch.where(torch.tensor([text[0] == "dog" for text in words.words])[:, None], torch.nan, scores)

    texts = toy.as_texts(["dog runs", "man runs not", "red cat"])
    table = compare([Odd()], classifier, texts, progress=False)
    assert table.values["random"]["comprehensiveness"].isnan().tolist() == [True, False, False]
    assert "must be finite" in table.left_out["random"].reason


def test_the_cost_is_that_of_the_texts_that_were_done(classifier):
    class Costly(LeaveOneOut):
        def __call__(self, words, target=None):
            decide(self.classifier, words)
            if "not" in words.words[0]:
                raise ValueError("no")
            return super().__call__(words)

    texts = toy.as_texts(["man runs", "not a", "dog runs"])
    table = compare([Costly(classifier)], classifier, texts, chunk=1, progress=False)
    assert table.costs["leave-one-out"].passes == 2 + 2  # two passes that decide, and one for each word


def table_of(**columns):
    values = {name: {"m": torch.tensor(column).double()} for name, column in columns.items()}
    return Table("hand", {"m": Comprehensiveness()}, values, dict.fromkeys(columns, CostPerText(0, 0)))


def test_difference_is_paired():
    base = torch.randn(200, generator=torch.Generator().manual_seed(1))
    noise = 0.1 * torch.randn(200, generator=torch.Generator().manual_seed(2))
    table = table_of(a=(base + 0.05 + noise).tolist(), b=base.tolist())
    difference = table.difference("m", "a", "b")
    assert difference.mean == pytest.approx(float(0.05 + noise.mean()), abs=1e-6)
    half = 1.96 * float(noise.std()) / math.sqrt(200)
    assert (difference.low, difference.high) == pytest.approx(
        (difference.mean - half, difference.mean + half), abs=0.002
    )
    back = table.difference("m", "b", "a")
    assert (back.mean, back.low, back.high) == pytest.approx((-difference.mean, -difference.high, -difference.low))
    assert table.difference("m", "a", "b") == difference
    assert table.difference("m", "a", "a", draws=501).to_dict() == {
        "mean": 0,
        "low": 0,
        "high": 0,
        "count": 200,
        "draws": 501,
    }


def test_difference_takes_texts_that_both_have():
    table = table_of(a=[1.0, math.nan, 3.0, 4.0], b=[0.0, 1.0, math.nan, 3.0])
    difference = table.difference("m", "a", "b")
    assert (difference.mean, difference.low, difference.high, difference.count) == (1, 1, 1, 2)
    with pytest.raises(ValueError, match="a and b have m on 1 texts in common"):
        table_of(a=[1.0, math.nan], b=[1.0, 1.0]).difference("m", "a", "b")
    with pytest.raises(ValueError, match="method must be one of 'a', 'b'; got 'c'"):
        table.difference("m", "a", "c")
    with pytest.raises(ValueError, match="metric must be one of 'm'; got 'n'"):
        table.difference("n", "a", "b")


def test_errors(classifier):
    some = TEXTS.select([0, 1])
    for scorers, options, message in (
        ([], {}, "scorers must be at least one, each with a name of its own; got none"),
        ([Random(), Random(1)], {}, "scorers must be .*; got random, random"),
        ([Random()], {"metrics": []}, "metrics must be at least one"),
        ([Random()], {"metrics": [Sufficiency(), Sufficiency((0.5,))]}, "got sufficiency, sufficiency"),
        ([Random()], {"seeds": (1,)}, r"seeds must be none, or at least 2 that differ; got \(1,\)"),
        ([Random()], {"seeds": (1, 1)}, "at least 2 that differ"),
        ([Random()], {"chunk": 0}, "chunk must be an integer of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(scorers, classifier, some, progress=False, **options)
    with pytest.raises(ValueError, match="memory has no rows to explain"):
        compare([Random()], classifier, TEXTS.select([]))
