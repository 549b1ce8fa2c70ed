"""How well words' scores agree with the words that people marked."""

import math
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.data.highlights import Highlights, Span
from spinformer.data.word_pattern import WORD
from spinformer.evaluate.explanations.decisions import Decisions
from spinformer.evaluate.explanations.metric import Metric


class HighlightAgreement(Metric):
    """AP = sum over thresholds t of (recall_t - recall_(t-1)) precision_t

    average precision of a text's scores; the positives are the words that a majority of annotators marked. Words with
    equal scores enter together, so a constant score gets the share of positives. Compare with random scores, which get
    more than that share on short texts. Punctuation is not ranked: annotators marked what stands between spaces. A text
    is looked up by its row among the highlights. AP is not defined where truncation left none of its marked words.
    """

    name, better, bounds = "highlight_agreement", "higher", (0.0, 1.0)

    def __init__(self, highlights: Highlights) -> None:
        checks.instance("highlights", highlights, Highlights)
        if not highlights.texts.paired:
            raise ValueError("highlights must be of pairs of texts; got single texts")
        self.highlights = highlights

    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """One average precision for each text."""
        checks.instance("decisions", decisions, Decisions)
        checked = decisions.check("scores", scores)
        words = decisions.words
        precisions = []
        for row, text, sides, values in zip(decisions.rows, words.words, words.sides, checked, strict=True):
            labels = self.positives(row, text, sides)
            ranked = [index for index, label in enumerate(labels) if label is not None]
            positive = torch.tensor([bool(labels[index]) for index in ranked])
            precisions.append(average_precision(values[ranked], positive))
        return torch.tensor(precisions, dtype=torch.float64)

    def positives(self, row: int, words: Sequence[str], sides: Sequence[int]) -> list[bool | None]:
        """For each word of the text at `row`, whether it was marked; None for punctuation."""
        if not 0 <= row < len(self.highlights):
            raise ValueError(f"row {row} has no highlights; there are {len(self.highlights)}")
        texts = self.highlights.texts
        labels: list[bool | None] = []
        for side, text in enumerate((texts.first[row], (texts.second or ())[row])):
            of_side = [word for word, other in zip(words, sides, strict=True) if other == side]
            labels += [
                _overlaps(span, self.highlights.spans[row][side]) if re.search(r"\w", word) else None
                for word, span in zip(of_side, _spans(of_side, text, row), strict=True)
            ]
        return labels


def average_precision(scores: Tensor, positive: Tensor) -> float:
    """sum over thresholds of (recall - recall before) precision, equal scores together; NaN without positives."""
    total = int(positive.sum())
    if not total:
        return math.nan
    _, group = scores.unique(return_inverse=True)
    groups = int(group.max()) + 1
    hits = torch.bincount(group, positive.double(), minlength=groups).flip(0)  # highest scores first
    ranked = torch.bincount(group, minlength=groups).flip(0).cumsum(0)
    return float((hits / total * hits.cumsum(0) / ranked).sum())


def _spans(words: Sequence[str], text: str, row: int) -> list[Span]:
    """Where in `text` each of `words` is; words without a token, and those that were cut off, are not among them."""
    matches = WORD.finditer(text)
    spans = []
    for word in words:
        match = next((match for match in matches if match.group() == word), None)
        if match is None:
            raise ValueError(f"row {row}: the word {word!r} is not where it should be in {text!r:.80}; other texts?")
        spans.append(match.span())
    return spans


def _overlaps(span: Span, marked: Sequence[Span]) -> bool:
    return any(start < span[1] and span[0] < stop for start, stop in marked)
