"""What a classifier says of texts without any of their words: v(nothing), from which Shapley values start.

Of a text only the special tokens are left, at their positions, so texts of the same length are then alike, and each
kind is asked about once. Where hidden tokens are left out of a pass, all kinds of a batch go through the model at once,
a few tokens each. Else each kind takes a pass of its own, of the full length, and its answer is kept. A pass over few
tokens takes nearly as long as one over a short text, so for one short text it is the second row of the pass over the
text itself.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from spinformer.data.words import Words
from spinformer.models.padding import row_ends

if TYPE_CHECKING:
    from spinformer.models.masked import MaskedClassifier

KEPT = 1 << 14  # answers that are kept, at most
TOGETHER = 48  # tokens of a text, at most, that is read in one pass with no words


class Nothing:
    """p_c(nothing) of texts, (B, classes), as long as the weights of the classifier stay as they are."""

    def __init__(self) -> None:
        self._known: dict[bytes, Tensor] = {}
        self._weights = 0

    @torch.no_grad()
    def __call__(self, classifier: "MaskedClassifier", words: Words) -> Tensor:
        """Passes for the kinds of these texts, which `classifier.passes` does not count."""
        before = classifier.passes
        answers = self._ask(classifier, words)
        classifier.passes = before
        return answers

    def _ask(self, classifier: "MaskedClassifier", words: Words) -> Tensor:
        words, nothing = words.to(classifier.device), torch.zeros_like(words.mask[:1])
        if classifier.hide is not None:  # a function of the caller may look at the words that it hides
            rows = torch.arange(len(words.counts))
            return classifier.row_probabilities(words, rows, nothing.expand(len(rows), -1))
        _decide(classifier, words)
        kinds, first = _kinds(words), dict[bytes, int]()
        for row, kind in enumerate(kinds):
            first.setdefault(kind, row)
        if classifier.packs:
            rows = torch.tensor(list(first.values()))
            answers = classifier.row_probabilities(words, rows, nothing.expand(len(rows), -1))
            place = {kind: number for number, kind in enumerate(first)}
            return answers[[place[kind] for kind in kinds]]
        weights = _state_of(classifier.model)
        if weights != self._weights or len(self._known) > KEPT:
            self._known, self._weights = {}, weights
        for kind, row in first.items():
            if kind not in self._known:  # alone: what is kept must not depend on what else was asked
                self._known[kind] = classifier.row_probabilities(words, torch.tensor([row]), nothing)[0]
        return torch.stack([self._known[kind] for kind in kinds])

    @torch.no_grad()
    def beside(self, classifier: "MaskedClassifier", words: Words) -> dict[str, Tensor] | None:
        """The inputs of one short text, and after it of the same without its words: (2, n) each.

        None where there are several texts or a long one, and where hidden tokens do not stay in their places.
        """
        short = words.inputs["attention_mask"].shape <= (1, TOGETHER)
        if not short or classifier.hide is not None or classifier.masking == "delete" or classifier.bf16:
            return None
        words = words.to(classifier.device)
        visible = words.inputs["attention_mask"].bool() & (words.owner < 0)
        if not bool(visible.any()):
            return None
        before = classifier.passes
        _decide(classifier, words)
        classifier.passes = before
        hidden = classifier.hidden_in_place(words.inputs, visible)
        return {name: torch.cat([value, hidden[name]]) for name, value in words.inputs.items()}


def _decide(classifier: "MaskedClassifier", words: Words) -> None:
    """How tokens are hidden is decided at the first passes: on some that show words, too."""
    if classifier.masking == "attention" and classifier.leaks is None:
        some = torch.arange(min(8, len(words.counts)))
        every_second = torch.arange(words.mask.shape[1], device=words.mask.device) % 2 == 0
        classifier.row_probabilities(words, some, words.mask[some] & every_second)


def _kinds(words: Words) -> list[bytes]:
    """Of each text the inputs with its words hidden, up to its last token."""
    ends = row_ends(words.inputs["attention_mask"].cpu()).tolist()
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
