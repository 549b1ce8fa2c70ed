"""How faithful words' scores are to what a classifier does. B texts of up to W words; p_y as in `Decisions`."""

import math
import time
from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.evaluate.explanations.correlation import KINDS, Kind, correlations
from spinformer.evaluate.explanations.decisions import Decisions
from spinformer.evaluate.explanations.metric import Metric, Quantity
from spinformer.models.masked import MaskedClassifier

FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)


def top_words(scores: Tensor, mask: Tensor, fractions: Sequence[float]) -> Tensor:
    """The ceil(q W) words with the highest scores, at least one, for each fraction q: (B, Q, W) booleans.

    Of words with equal scores the earlier comes first. W counts the words of each text, without padding.
    """
    order = scores.masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True, stable=True)
    rank = order.argsort(dim=1)
    share = torch.tensor(fractions, dtype=torch.float64) * mask.sum(1, keepdim=True)  # (B, Q)
    size = (share - 1e-9).ceil().clamp_min(1)  # 0.07 * 100 is a little above 7
    return (rank[:, None] < size[:, :, None]) & mask[:, None]


class _Perturbation(Metric):
    """mean over fractions q of p_y(N) - p_y(C_q)."""

    bounds = (-1.0, 1.0)

    def __init__(self, fractions: Sequence[float] = FRACTIONS) -> None:
        checks.items("fractions", fractions, int, float)
        if not fractions or not all(0 < q <= 1 for q in fractions):
            raise ValueError(f"fractions must be at least one number, each above 0 and at most 1; got {fractions}")
        self.fractions = tuple(fractions)

    def curve(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """(B, Q), one value for each fraction; the classifier answers for all fractions at once."""
        checks.instance("decisions", decisions, Decisions)
        top = top_words(decisions.check("scores", scores), decisions.mask, self.fractions)
        return decisions.confidence[:, None] - decisions.values(self._visible(top, decisions.mask))

    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """The area over the perturbation curve: the mean over the fractions."""
        return self.curve(decisions, scores).mean(1)

    @abstractmethod
    def _visible(self, top: Tensor, mask: Tensor) -> Tensor:
        """C_q: the coalitions that the classifier sees, given the top words."""


class Comprehensiveness(_Perturbation):
    """mean over q of p_y(N) - p_y(N less its top q words)                    (DeYoung et al. 2020)

    High where the classifier needs the words that score high. The mean is over the fractions given; ERASER's also
    counts q = 0, where nothing is lost.
    """

    name, better = "comprehensiveness", "higher"

    def _visible(self, top: Tensor, mask: Tensor) -> Tensor:
        return mask[:, None] & ~top


class Sufficiency(_Perturbation):
    """mean over q of p_y(N) - p_y(the top q words alone)                     (DeYoung et al. 2020)

    Low where the words that score high are enough. The mean is over the fractions given; ERASER's also counts q = 0,
    the empty text.
    """

    name, better = "sufficiency", "lower"

    def _visible(self, top: Tensor, mask: Tensor) -> Tensor:
        return top


class LeaveOneOutCorrelation(Metric):
    """corr over words i of scores_i and p_y(N) - p_y(N - i)

    Spearman's (ties share their mean rank) or Pearson's; not defined for texts of fewer than 3 words, nor where all
    scores, or all drops, are equal. The drops are computed once for all methods: W passes for a text.
    """

    better, bounds = "higher", (-1.0, 1.0)

    def __init__(self, kind: Kind = "spearman") -> None:
        checks.choice("kind", kind, KINDS)
        self.kind: Kind = kind
        self.name = f"leave_one_out_{kind}"

    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """One correlation for each text."""
        checks.instance("decisions", decisions, Decisions)
        return correlations(decisions.check("scores", scores), decisions.drops, decisions.mask, self.kind)


class Stability(Quantity):
    """mean over pairs of seeds s < t of Spearman(scores_s, scores_t)

    over the words of a text; called with the scores, (B, W) each, of at least two seeds. Not defined for texts of fewer
    than 3 words, nor where any seed gives all words the same score.
    """

    name, better, bounds = "stability", "higher", (-1.0, 1.0)

    def __call__(self, decisions: Decisions, scores: Sequence[Tensor]) -> Tensor:
        """(B,)."""
        checks.instance("decisions", decisions, Decisions)
        checks.items("scores", scores, Tensor)
        if len(scores) < 2:
            raise ValueError(f"stability needs the scores of at least 2 seeds; got {len(scores)}")
        checked = [decisions.check(f"scores of seed {index}", one) for index, one in enumerate(scores)]
        pairs = [
            correlations(first, second, decisions.mask, "spearman")
            for index, first in enumerate(checked)
            for second in checked[index + 1 :]
        ]
        return torch.stack(pairs).mean(0)


class Cost(Quantity):
    """passes: forward passes made through `classifier`;   milliseconds: elapsed time

    inside `with Cost(classifier) as cost:`, summed over all times it is entered and left without an error. Calls of the
    model that bypass the classifier count in the time but not in the passes.
    """

    name, better, bounds = "cost", "lower", (0.0, math.inf)

    def __init__(self, classifier: MaskedClassifier) -> None:
        checks.instance("classifier", classifier, MaskedClassifier)
        self.classifier = classifier
        self.passes, self.milliseconds = 0, 0.0
        self._start = (0, 0.0)

    def __enter__(self) -> "Cost":
        self._start = (self.classifier.passes, self._now())
        return self

    def __exit__(self, error: object, *rest: object) -> None:
        if error is not None:
            return
        passes, start = self._start
        self.passes += self.classifier.passes - passes
        self.milliseconds += 1000 * (self._now() - start)

    def _now(self) -> float:
        if self.classifier.device.type == "cuda":
            torch.cuda.synchronize(self.classifier.device)
        return time.perf_counter()
