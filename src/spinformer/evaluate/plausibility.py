"""How well words' scores agree with the words that people marked."""

import math
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer.data.highlights import Highlights, Span
from spinformer.data.words import WORD
from spinformer.evaluate.decisions import Decisions
from spinformer.evaluate.faithfulness import Metric


class HighlightAgreement(Metric):
    """AP = sum over thresholds t of (recall_t - recall_(t-1)) precision_t

    average precision of a text's scores, its positives being the words that a majority of annotators marked; words with
    equal scores come in together, so a constant score gets the share of positives; a random order gets more than that
    on texts of few words, and is what to compare with. Punctuation is left out of the ranking: annotators marked what
    stands between spaces. A text is looked up by its row among the highlights'; AP is not defined where truncation left
    none of its marked words.
    """

    name, better, bounds = "highlight_agreement", "higher", (0.0, 1.0)

    def __init__(self, highlights: Highlights) -> None:
        self.highlights = highlights

    def __call__(self, decisions: Decisions, scores: Tensor) -> Tensor:
        """One average precision a text."""
        found = []
        for place, (row, values) in enumerate(zip(decisions.rows, decisions.check("scores", scores), strict=True)):
            positive = self.positives(row, decisions.words.words[place], decisions.words.sides[place])
            kept = [number for number, truth in enumerate(positive) if truth is not None]
            found.append(average_precision(values[kept], torch.tensor([bool(positive[number]) for number in kept])))
        return torch.tensor(found, dtype=torch.float64)

    def positives(self, row: int, words: Sequence[str], sides: Sequence[int]) -> list[bool | None]:
        """For each word of the text at `row`, whether it was marked; None for punctuation."""
        if not 0 <= row < len(self.highlights):
            raise ValueError(f"row {row} has no highlights; there are {len(self.highlights)}")
        texts = self.highlights.texts
        found: list[bool | None] = []
        for side, text in enumerate((texts.first[row], (texts.second or ())[row])):
            own = [word for word, place in zip(words, sides, strict=True) if place == side]
            found += [
                _overlaps(span, self.highlights.spans[row][side]) if re.search(r"\w", word) else None
                for word, span in zip(own, _places(own, text, row), strict=True)
            ]
        return found


def average_precision(scores: Tensor, positive: Tensor) -> float:
    """sum over thresholds of (recall - recall before) precision, equal scores together; NaN without positives."""
    total = int(positive.sum())
    if not total:
        return math.nan
    _, place = scores.unique(return_inverse=True)
    groups = int(place.max()) + 1
    hits = torch.bincount(place, positive.double(), minlength=groups).flip(0)  # highest scores first
    seen = torch.bincount(place, minlength=groups).flip(0).cumsum(0)
    return float((hits / total * hits.cumsum(0) / seen).sum())


def _places(words: Sequence[str], text: str, row: int) -> list[Span]:
    """Where in `text` each of its words is. Words without a token are not among them, nor those that were cut off."""
    matches = WORD.finditer(text)
    found = []
    for word in words:
        match = next((match for match in matches if match.group() == word), None)
        if match is None:
            raise ValueError(f"row {row}: the word {word!r} is not where it should be in {text!r:.80}; other texts?")
        found.append(match.span())
    return found


def _overlaps(span: Span, marked: Sequence[Span]) -> bool:
    return any(start < span[1] and span[0] < stop for start, stop in marked)
