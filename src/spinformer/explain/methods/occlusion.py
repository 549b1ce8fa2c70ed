"""Leave-one-out: what the classifier loses when one word is hidden."""

import torch
from torch import Tensor

from spinformer._base.choices import METHOD_SUMMARIES
from spinformer.data.words import Words
from spinformer.explain.methods.base import ScorerMethod
from spinformer.explain.scoring import decided
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import value_of


class LeaveOneOut:
    """score_i = p_y(N) - p_y(N - i)                                       (occlusion; Li, Monroe and Jurafsky 2016)

    with N all words of the text and y the class explained.
    """

    name = "leave-one-out"
    passes = "W + 1"

    def __init__(self, classifier: MaskedClassifier) -> None:
        self.classifier = classifier

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        batch, width = words.mask.shape
        device = words.mask.device
        full = self.classifier.full_probabilities(words).to(device)
        classes = decided(full, target)
        texts, left_out = words.mask.nonzero(as_tuple=True)  # no pass is spent on padding
        coalitions = words.mask[texts].clone()
        coalitions[torch.arange(len(texts), device=device), left_out] = False
        without = self.classifier.row_probabilities(words, texts, coalitions).to(device)
        drop = value_of(full, classes)[texts] - value_of(without, classes[texts])
        return torch.zeros(batch, width, device=device).index_put_((texts, left_out), drop)


LEAVE_ONE_OUT = ScorerMethod(
    LeaveOneOut.name,
    METHOD_SUMMARIES[LeaveOneOut.name],
    LeaveOneOut.passes,
    lambda context: LeaveOneOut(context.classifier),
)
