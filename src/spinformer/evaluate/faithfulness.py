"""How faithful words' scores are to what a classifier does. B texts of up to W words; p_y as in `Decisions`.

A metric declares its `name`, which way is `better`, and the `bounds` of its values, and is called with decisions and
scores (B, W) of words towards the decided class; the answer is (B,), one value a text, NaN where it is not defined.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from spinformer import checks
from spinformer.evaluate.correlation import KINDS, Kind, correlations
from spinformer.evaluate.decisions import Decisions
from spinformer.models.masked import MaskedClassifier

Better = Literal["higher", "lower"]

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)


class Metric(ABC):
    """A value for each text's scores."""

    name: str
    better: Better
    bounds: tuple[float, float]

    @abstractmethod
    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """(B,) for scores (B, W); NaN where it is not defined."""


@dataclass(frozen=True)
class Summary:
    """mean = sum x / n,   stderr = sqrt(sum (x - mean)² / (n (n - 1)))

    over the `count` texts whose value is defined; left_out: the others. NaN where there are too few.
    """

    mean: float
    stderr: float
    count: int
    left_out: int

    @classmethod
    def of(cls, values: Tensor) -> "Summary":
        """Of values (N,), NaN where not defined."""
        kept = values[~values.isnan()]
        count = len(kept)
        mean = float(kept.mean()) if count else math.nan
        stderr = float(kept.std()) / math.sqrt(count) if count > 1 else math.nan
        return cls(mean, stderr, count, len(values) - count)

    def to_dict(self) -> dict[str, float | int | None]:
        """For JSON."""
        numbers = {"mean": defined(self.mean), "stderr": defined(self.stderr)}
        return {**numbers, "count": self.count, "left_out": self.left_out}


def defined(value: float) -> float | None:
    """The number, or None where it is NaN or infinite, which JSON has no words for."""
    return value if math.isfinite(value) else None


def top(scores: Tensor, mask: Tensor, fractions: Sequence[float]) -> Tensor:
    """The ceil(q W) words with the highest scores, at least one, for each fraction q: (B, Q, W) booleans.

    Of words with equal scores the earlier comes first. W counts each text's own words.
    """
    order = scores.masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True, stable=True)
    place = order.argsort(dim=1)
    share = torch.tensor(fractions, dtype=torch.float64) * mask.sum(1, keepdim=True)  # (B, Q)
    size = (share - 1e-9).ceil().clamp_min(1)  # 0.07 * 100 is a little above 7
    return (place[:, None] < size[:, :, None]) & mask[:, None]


class _Perturbation(Metric):
    """mean over fractions q of p_y(N) - p_y(C_q)."""

    bounds = (-1.0, 1.0)

    def __init__(self, fractions: Sequence[float] = FRACTIONS) -> None:
        if not fractions or not all(0 < q <= 1 for q in fractions):
            raise ValueError(f"fractions must be at least one number, each above 0 and at most 1; got {fractions}")
        self.fractions = tuple(fractions)

    def curve(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """(B, Q), one value a fraction; all fractions are asked of the classifier at once."""
        found = top(decisions.check("scores", scores), decisions.mask, self.fractions)
        return decisions.confidence[:, None] - decisions.values(self._seen(found, decisions.mask))

    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """The area over the perturbation curve: the mean over the fractions."""
        return self.curve(decisions, scores).mean(1)

    @abstractmethod
    def _seen(self, best: Tensor, mask: Tensor) -> Tensor:
        """C_q: the coalitions that the classifier sees, given the top words."""


class Comprehensiveness(_Perturbation):
    """mean over q of p_y(N) - p_y(N less its top q words)                    (DeYoung et al. 2020)

    High where the classifier needs the words that score high. The mean is over the fractions given; ERASER's also
    counts q = 0, where nothing is lost.
    """

    name, better = "comprehensiveness", "higher"

    def _seen(self, best: Tensor, mask: Tensor) -> Tensor:
        return mask[:, None] & ~best


class Sufficiency(_Perturbation):
    """mean over q of p_y(N) - p_y(the top q words alone)                     (DeYoung et al. 2020)

    Low where the words that score high are enough. The mean is over the fractions given; ERASER's also counts q = 0,
    the empty text.
    """

    name, better = "sufficiency", "lower"

    def _seen(self, best: Tensor, mask: Tensor) -> Tensor:
        return best


class LeaveOneOutCorrelation(Metric):
    """corr over words i of scores_i and p_y(N) - p_y(N - i)

    Spearman's (ties share their mean rank) or Pearson's; not defined for texts of fewer than 3 words, nor where all
    scores, or all drops, are equal. The drops are computed once for all methods: W passes a text.
    """

    better, bounds = "higher", (-1.0, 1.0)

    def __init__(self, kind: Kind = "spearman") -> None:
        checks.choice("kind", kind, KINDS)
        self.kind: Kind = kind
        self.name = f"leave_one_out_{kind}"

    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """One correlation a text."""
        return correlations(decisions.check("scores", scores), decisions.drops, decisions.mask, self.kind)


class Stability:
    """mean over pairs of seeds s < t of Spearman(scores_s, scores_t)

    over the words of a text; called with the scores, (B, W) each, of at least two seeds. Not defined for texts of fewer
    than 3 words, nor where any seed gives all words the same score.
    """

    name: ClassVar[str] = "stability"
    better: ClassVar[Better] = "higher"
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def __call__(self, decisions: Decisions, scores: Sequence[Tensor]) -> Tensor:
        """(B,)."""
        if len(scores) < 2:
            raise ValueError(f"stability needs the scores of at least 2 seeds; got {len(scores)}")
        found = [decisions.check(f"scores of seed {place}", one) for place, one in enumerate(scores)]
        pairs = [
            correlations(first, second, decisions.mask, "spearman")
            for place, first in enumerate(found)
            for second in found[place + 1 :]
        ]
        return torch.stack(pairs).mean(0)


class Cost:
    """passes: forward passes made through `classifier`;   milliseconds: time gone by

    inside `with Cost(classifier) as cost:`, over all times it is entered. What a method asks of the model behind the
    classifier's back (gradients, attentions) is in the time but not in the passes.
    """

    name: ClassVar[str] = "cost"
    better: ClassVar[Better] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)

    def __init__(self, classifier: MaskedClassifier) -> None:
        self.classifier = classifier
        self.passes, self.milliseconds = 0, 0.0
        self._start = (0, 0.0)

    def __enter__(self) -> "Cost":
        self._start = (self.classifier.passes, self._now())
        return self

    def __exit__(self, *error: object) -> None:
        passes, start = self._start
        self.passes += self.classifier.passes - passes
        self.milliseconds += 1000 * (self._now() - start)

    def _now(self) -> float:
        if self.classifier.device.type == "cuda":
            torch.cuda.synchronize(self.classifier.device)
        return time.perf_counter()
