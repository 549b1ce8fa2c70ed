"""What `ground` says at its end: how faithful the game is, and what more texts would bring."""

from types import SimpleNamespace

import pytest
import torch

from spinformer.evaluate.explanations.game_fit import Fit
from spinformer.evaluate.explanations.report import GroundingReport


def fit(r_squared):
    """Of values whose error has the share 1 - R squared of their variance."""
    real = torch.tensor([[0.0, 1.0, 0.0, 1.0]], dtype=torch.float64)
    error = (0.25 * (1 - r_squared)) ** 0.5
    return Fit(real + error * torch.tensor([[1.0, 1.0, -1.0, -1.0]], dtype=torch.float64), real)


def report(unseen, learnt):
    table = SimpleNamespace(summary=lambda name, metric: SimpleNamespace(mean=0.5), to_dict=dict)
    return GroundingReport(fit(unseen), table, 4, None if learnt is None else fit(learnt))


@pytest.mark.parametrize(
    ("unseen", "learnt", "advice"),
    [
        (0.80, 0.90, "on texts that it learnt from 0.900: more texts like these would bring up to 0.10 by themselves"),
        (0.80, 0.805, "on texts that it learnt from 0.805: more texts like these would bring little by themselves"),
        (0.90, 0.80, "on texts that it learnt from 0.800: more texts like these would bring little by themselves"),
    ],
)
def test_what_more_texts_would_bring(unseen, learnt, advice):
    told = report(unseen, learnt)
    assert told.fit.pooled == pytest.approx(unseen)
    assert told.advice.startswith(advice)
    assert advice in str(told)
    assert told.to_dict()["advice"] == told.advice
    assert told.to_dict()["learnt"]["pooled"] == pytest.approx(learnt)


def test_without_texts_learnt_from_nothing_is_said():
    told = report(0.8, None)
    assert told.advice is None
    assert told.to_dict()["learnt"] is None
    assert "more texts" not in str(told)
