"""How games agree with the classifier: against the classifier's own game, against shapiq, and by hand."""

import json
import math

import pytest
import torch

pytest.importorskip("transformers")

from research.benchmarks.exact import shapiq_values
from spinformer.evaluate import Agreement, Fit, GameFit, InteractionAgreement
from spinformer.evaluate.explanations.decisions import random_coalitions
from spinformer.games import TableGame, exact_values
from spinformer.games.exact import coalition_table
from spinformer.games.game import Game
from spinformer.models.masked import ConfidenceGame
from tests.evaluate import toy

TEXTS = ("man dog cat red", "a dog runs not two eats the", "man not", "dog")
PAIRS = {("man", "dog"): -1.5, ("dog", "not"): 2.0, ("runs", "eats"): 0.8}


class Constant(Game):
    """v(C) = a number for each text."""

    def __init__(self, decisions, numbers):
        self.mask, self.batched, self.dtype = decisions.mask, True, torch.float64
        self.batch, self.players = decisions.mask.shape
        self.device = torch.device("cpu")
        self.numbers = torch.as_tensor(numbers, dtype=torch.float64).expand(self.batch)

    def evaluate(self, coalitions):
        return self.numbers[:, None].expand(coalitions.shape[:2])


def confidence_game(decisions):
    return ConfidenceGame(decisions.classifier, decisions.words, decisions.target)


def test_random_coalitions():
    decisions = toy.decisions(*TEXTS)
    drawn = random_coalitions(decisions, 4000, seed=3)
    assert not (drawn & ~decisions.mask[:, None]).any()
    for row, text in enumerate(TEXTS):
        count = len(text.split())
        sizes = drawn[row].sum(1).bincount(minlength=count + 1) / 4000
        assert sizes.tolist() == pytest.approx([1 / (count + 1)] * (count + 1), abs=0.03)
        shares = drawn[row, :, :count].float().mean(0)
        assert shares.tolist() == pytest.approx([0.5] * count, abs=0.03)
    assert not torch.equal(drawn, random_coalitions(decisions, 4000, seed=4))
    alone = toy.decisions(TEXTS[2], rows=[2])
    assert torch.equal(random_coalitions(alone, 4000, seed=3)[0], drawn[2, :, :2])
    twins = random_coalitions(toy.decisions(TEXTS[1], TEXTS[1]), 50, seed=3)
    assert not torch.equal(twins[0], twins[1])
    with pytest.raises(ValueError, match=r"seed must be below 2\*\*30"):
        random_coalitions(decisions, 2, seed=2**30)


def test_the_classifiers_own_game_fits():
    decisions = toy.decisions(*TEXTS, pairs=PAIRS)
    fit = GameFit(budget=40, seed=1)(decisions, confidence_game(decisions))
    assert fit.real.shape == (4, 40)
    assert (fit.pooled, fit.within) == pytest.approx((1, 1))
    assert fit.per_text.tolist() == pytest.approx([1] * 4)
    assert json.loads(json.dumps(fit.to_dict())) == {"pooled": 1.0, "within": 1.0, "texts": 4, "coalitions": 40}


def test_means_explain_nothing_but_which_text_it_is():
    decisions = toy.decisions(*TEXTS, pairs=PAIRS)
    metric = GameFit(budget=50)
    real = metric(decisions, confidence_game(decisions)).real
    assert metric(decisions, Constant(decisions, real.mean())).pooled == pytest.approx(0)
    means = metric(decisions, Constant(decisions, real.mean(1)))
    assert means.within == pytest.approx(0)
    assert means.per_text.tolist() == pytest.approx([0] * 4, abs=1e-9)
    between = 50 * (real.mean(1) - real.mean()).square().sum() / (real - real.mean()).square().sum()
    assert means.pooled == pytest.approx(float(between))
    assert metric(decisions, Constant(decisions, 5.0)).pooled < -10


def test_fit_by_hand_and_joined():
    parts = [
        Fit(torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[0.0, 2.0]]).double()),
        Fit(torch.tensor([[3.0, 3.0]]).double(), torch.tensor([[3.0, 3.0]]).double()),
    ]
    fit = Fit.join(parts)
    assert fit.pooled == pytest.approx(1 - 1 / 6)  # about 2: 4 + 0 + 1 + 1
    assert fit.within == pytest.approx(1 - 1 / 2)
    assert fit.per_text[0].item() == pytest.approx(0.5)
    assert fit.per_text[1].isnan()
    assert parts[1].to_dict()["within"] is None


def test_chunks_give_the_same_fit():
    together = toy.decisions(*TEXTS)
    metric = GameFit(budget=16)
    fits = [metric(one, Constant(one, 0.6)) for one in (toy.decisions(TEXTS[k], rows=[k]) for k in range(len(TEXTS)))]
    assert Fit.join(fits).pooled == pytest.approx(metric(together, Constant(together, 0.6)).pooled, abs=1e-6)


def test_real_interactions_against_shapiq():
    pytest.importorskip("shapiq")
    decisions = toy.decisions(*TEXTS, pairs=PAIRS)
    real = InteractionAgreement().real(decisions)
    for row, text in enumerate(TEXTS[:3]):
        count = len(text.split())
        table = coalition_table(decisions.game(row), torch.arange(count))[0]
        torch.testing.assert_close(real[row, :count, :count], shapiq_values(table, "BII"), rtol=0, atol=1e-6)
        assert (real[row, count:] == 0).all()
    assert (real == real.mT).all()


def test_real_interactions_by_hand():
    sigmoid = [1 / (1 + math.exp(-z)) for z in (0.0, 2.0, 1.0, 1.5)]  # nothing, man, dog, both with -1.5
    decisions = toy.decisions("man dog", pairs=PAIRS)
    expected = sigmoid[3] - sigmoid[1] - sigmoid[2] + sigmoid[0]
    assert InteractionAgreement().real(decisions)[0, 0, 1].item() == pytest.approx(expected, abs=1e-6)


def test_padding_costs_no_passes():
    decisions = toy.decisions(*TEXTS)
    passes = decisions.classifier.passes
    InteractionAgreement().real(decisions)
    assert decisions.classifier.passes - passes == 2**4 + 2**7 + 2**2


def test_agreement():
    decisions = toy.decisions(*TEXTS, pairs=PAIRS)
    metric = InteractionAgreement()
    real = metric.real(decisions)
    for predicted in (confidence_game(decisions), real, 5 * real + 1, real.float()):
        agreement = metric(decisions, predicted, real)
        assert agreement.pooled("pearson") == pytest.approx(1, abs=1e-5)
        assert agreement.per_text("pearson").tolist()[:2] == pytest.approx([1, 1], abs=1e-5)
        assert agreement.per_text("spearman")[2:].isnan().all()  # one pair, none
    assert metric(decisions, -real).pooled("spearman") == pytest.approx(-1)
    assert metric(decisions, real.tril(), real).pooled("pearson") == pytest.approx(1)  # half of it says as much
    record = json.loads(json.dumps(metric(decisions, real, real).to_dict()))
    assert (record["texts"], record["pairs"]) == (4, 6 + 21 + 1)
    assert record["pearson"]["mean"] == pytest.approx(1)
    assert (record["spearman"]["count"], record["spearman"]["left_out"]) == (2, 2)


def test_agreement_pools_and_joins():
    first = Agreement((torch.tensor([0.0, 1.0, 2.0]),), (torch.tensor([0.0, 1.0, 2.0]),))
    second = Agreement((torch.tensor([10.0, 11.0, 12.0]),), (torch.tensor([2.0, 1.0, 0.0]),))
    both = Agreement.join([first, second])
    assert both.per_text("pearson").tolist() == pytest.approx([1, -1])
    assert both.pooled("pearson") == pytest.approx(0, abs=1e-12)


def test_other_games():
    decisions = toy.decisions("man dog cat")
    table = torch.rand(8).double()
    agreement = InteractionAgreement()(decisions, TableGame(table))  # a single game for a single text
    torch.testing.assert_close(agreement.predicted[0], exact_values(TableGame(table), "BII")[[0, 0, 1], [1, 2, 2]])
    assert GameFit(4)(decisions, TableGame(table)).predicted.shape == (1, 4)


def test_refusals():
    long = toy.decisions("dog", " ".join(["dog"] * 13), rows=[7, 8])
    with pytest.raises(ValueError, match="at most 12 words a text; row 8 has 13"):
        InteractionAgreement().real(long)
    decisions = toy.decisions("man dog cat")
    with pytest.raises(ValueError, match=r"the same words, 1 texts of up to 3; got 1 of 2"):
        InteractionAgreement()(decisions, TableGame(torch.rand(4)))
    with pytest.raises(ValueError, match="the same words"):
        GameFit()(decisions, TableGame(torch.rand(4)))
    with pytest.raises(ValueError, match=r"predicted must have shape \(1, 3, 3\)"):
        InteractionAgreement()(decisions, torch.zeros(1, 2, 2))
    with pytest.raises(ValueError, match="predicted must be finite"):
        InteractionAgreement()(decisions, torch.full((1, 3, 3), math.nan))
    with pytest.raises(ValueError, match="budget must be an integer of at least 2"):
        GameFit(budget=1)
