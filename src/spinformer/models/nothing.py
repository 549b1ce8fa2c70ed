"""What a classifier says of texts without any of their words: v(nothing), from which Shapley values start.

Of a text only the special tokens are left, at their positions, so texts of the same length are then alike. Each kind is
asked about once, alone: the answer does not depend on what else was asked.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from spinformer.data.words import Words

if TYPE_CHECKING:
    from spinformer.models.masked import MaskedClassifier

KEPT = 1 << 14  # answers that are kept, at most


class Nothing:
    """p_c(nothing) of texts, (B, classes), as long as the weights of the classifier stay as they are."""

    def __init__(self) -> None:
        self._known: dict[bytes, Tensor] = {}
        self._weights = 0

    @torch.no_grad()
    def __call__(self, classifier: "MaskedClassifier", words: Words) -> Tensor:
        """One pass for each kind of text that was not asked about before, which `classifier.passes` does not count."""
        before = classifier.passes
        answers = self._ask(classifier, words)
        classifier.passes = before
        return answers

    def _ask(self, classifier: "MaskedClassifier", words: Words) -> Tensor:
        words, nothing = words.to(classifier.device), torch.zeros_like(words.mask[:1])
        if classifier.hide is not None:  # a function of the caller may look at the words that it hides
            rows = torch.arange(len(words.counts))
            return classifier.row_probabilities(words, rows, nothing.expand(len(rows), -1))
        if classifier.masking == "attention" and classifier.leaks is None:
            # How tokens are hidden is decided at the first passes: on some that show words, too.
            some = torch.arange(min(8, len(words.counts)))
            every_second = torch.arange(words.mask.shape[1], device=words.mask.device) % 2 == 0
            classifier.row_probabilities(words, some, words.mask[some] & every_second)
        weights = _state_of(classifier.model)
        if weights != self._weights or len(self._known) > KEPT:
            self._known, self._weights = {}, weights
        answers = []
        for row, kind in enumerate(_kinds(words)):
            if kind not in self._known:
                self._known[kind] = classifier.row_probabilities(words, torch.tensor([row]), nothing)[0]
            answers.append(self._known[kind])
        return torch.stack(answers)


def _kinds(words: Words) -> list[bytes]:
    """Of each text the inputs with its words hidden, up to its last token."""
    real = words.inputs["attention_mask"].cpu()
    ends = (real * torch.arange(1, real.shape[1] + 1)).amax(1).tolist()
    hidden = words.owner.cpu() >= 0
    columns = [words.inputs["input_ids"].cpu().masked_fill(hidden, -1)]
    columns += [value.cpu() for name, value in sorted(words.inputs.items()) if name != "input_ids"]
    return [
        b"".join(column[row, :end].contiguous().numpy().tobytes() for column in columns) for row, end in enumerate(ends)
    ]


def _state_of(model: Any) -> int:
    """A number that changes with the weights: training, other weights and other places of memory are noticed."""
    states = [(one.data_ptr(), 0 if one.is_inference() else one._version) for one in model.parameters()]
    return hash(tuple(states))
