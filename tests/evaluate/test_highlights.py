"""Agreement with highlights: average precision by hand and against scikit-learn, and which word is which."""

import math

import pytest
import torch

pytest.importorskip("transformers")

from spinformer.data.highlights import Highlights, read_highlights
from spinformer.data.texts import Texts
from spinformer.evaluate import HighlightAgreement
from spinformer.evaluate.explanations.highlights import average_precision
from tests.data.test_highlights import row, save
from tests.evaluate import toy

PAIR = ("the red dog, a dog runs.", "two dog eats")


def highlights(*pairs, spans):
    first, second = zip(*pairs, strict=True)
    return Highlights(Texts(first, second), tuple(spans), 0)


def test_average_precision_by_hand():
    positive = torch.tensor([True, False, True, False])
    assert average_precision(torch.tensor([4.0, 3.0, 2.0, 1.0]), positive) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(torch.tensor([4.0, 1.0, 3.0, 2.0]), positive) == pytest.approx(1)
    assert average_precision(torch.tensor([1.0, 4.0, 2.0, 3.0]), positive) == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert average_precision(torch.zeros(4), positive) == pytest.approx(1 / 2)
    assert math.isnan(average_precision(torch.zeros(4), torch.zeros(4, dtype=torch.bool)))


def test_average_precision_against_scikit_learn():
    sklearn = pytest.importorskip("sklearn.metrics")
    draw = torch.Generator().manual_seed(0)
    for count in (1, 2, 5, 30):
        for _ in range(10):
            scores = torch.randint(8, (count,), generator=draw).double()  # many ties
            positive = torch.rand(count, generator=draw) < 0.4
            positive[0] = True
            assert average_precision(scores, positive) == pytest.approx(
                sklearn.average_precision_score(positive, scores)
            )


def test_words_are_found_by_their_offsets():
    # the second "dog" of the premise, "runs." with its stop, and "dog" of the hypothesis
    marks = highlights(PAIR, spans=[(((15, 18), (19, 24)), ((4, 7),))])
    decisions = toy.decisions(PAIR)
    words, sides = decisions.words.words[0], decisions.words.sides[0]
    assert words == ("the", "red", "dog", ",", "a", "dog", "runs", ".", "two", "dog", "eats")
    positive = HighlightAgreement(marks).positives(0, words, sides)
    assert positive == [False, False, False, None, False, True, True, None, False, True, False]
    scores = torch.tensor([[0, 0, 0, 9, 0, 3, 2, 9, 0, 1, 0]]).float()  # punctuation is not ranked
    assert HighlightAgreement(marks)(decisions, scores).item() == pytest.approx(1)
    assert HighlightAgreement(marks)(decisions, torch.zeros(1, 11)).item() == pytest.approx(3 / 9)
    assert HighlightAgreement(marks)(decisions, -scores).item() < 0.45


def test_rows_choose_the_highlights():
    other = ("a cat sleeps", "the cat")
    marks = highlights(other, PAIR, spans=[(((2, 5),), ()), (((4, 7),), ())])
    decisions = toy.decisions(PAIR, other, rows=[1, 0])
    scores = torch.zeros(2, 11)
    scores[0, 1] = scores[1, 1] = 1.0  # red; cat
    metric = HighlightAgreement(marks)
    assert metric(decisions, scores).tolist() == [1, 1]
    with pytest.raises(ValueError, match="row 0: the word 'the' is not where it should be in 'a cat sleeps'"):
        metric(toy.decisions(PAIR), torch.zeros(1, 11))
    with pytest.raises(ValueError, match="row 2 has no highlights; there are 2"):
        metric(toy.decisions(PAIR, rows=[2]), torch.zeros(1, 11))


def test_marked_words_that_were_cut_off():
    marks = highlights(PAIR, spans=[(((19, 24),), ())])
    decisions = toy.decisions(PAIR, max_length=9)
    assert "runs" not in decisions.words.words[0]
    assert HighlightAgreement(marks)(decisions, torch.zeros(decisions.mask.shape)).isnan().all()


def test_from_a_file(tmp_path):
    pair = {"premise": "A red dog runs.", "hypothesis": "A dog runs."}
    marks = [("A red *dog* *runs.*", "A *dog* *runs.*")] * 2 + [("A *red* dog runs.", "A dog runs.")]
    marked = read_highlights(save(tmp_path / "a.jsonl.gz", row(**pair, marks=marks)))
    decided = toy.decisions((pair["premise"], pair["hypothesis"]))
    scores = torch.tensor([[float(word in ("dog", "runs")) for word in decided.words.words[0]]])
    assert HighlightAgreement(marked)(decided, scores).tolist() == [1]
