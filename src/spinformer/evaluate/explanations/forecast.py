"""How long a measurement will take, said before it begins: from what a few texts, or one batch of passes, take."""

from dataclasses import dataclass

import torch

from spinformer._base.progress import duration
from spinformer._base.shared_state import evaluation_mode
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.evaluate.explanations.faithfulness import Cost
from spinformer.models.masked import MaskedClassifier

FEW = 4  # texts that are measured for a forecast
TRIAL = 256  # masked passes that are timed for a forecast


@dataclass(frozen=True)
class Forecast:
    """Passes of the classifier, and seconds, that some work will take. Forecasts of parts add up."""

    passes: float = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, cost: Cost, share: float = 1.0) -> "Forecast":
        """Of the whole, where `cost` was that of one part in `share`."""
        return cls(cost.passes * share, cost.milliseconds * share / 1000)

    def __add__(self, other: "Forecast") -> "Forecast":
        return Forecast(self.passes + other.passes, self.seconds + other.seconds)

    def __str__(self) -> str:
        return f"about {round(self.passes):,} passes, {duration(self.seconds)}"


def few(texts: Texts) -> list[int]:
    """The rows of at most FEW of the texts, from short to long."""
    return texts.spread(FEW)


def seconds_per_pass(classifier: MaskedClassifier, words: Words) -> float:
    """What one of many masked passes of the first text takes: TRIAL of them are timed, after a few to warm up."""
    one = words.rows(0, 1)
    half = torch.arange(int(one.counts)) % 2 == 0
    with evaluation_mode(classifier.model):
        classifier.probabilities(one, half.expand(1, 8, -1))
        with Cost(classifier) as cost:
            classifier.probabilities(one, half.expand(1, TRIAL, -1))
    return cost.milliseconds / 1000 / TRIAL
