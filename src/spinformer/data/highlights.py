"""Words that people marked as the reason for a label: the highlights of e-SNLI (Camburu et al. 2018)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinformer._base.files import sha256
from spinformer.data.columns import LabelEncoder
from spinformer.data.files import json_rows
from spinformer.data.texts import NLI_LABELS, Texts

FIELDS = ("premise", "hypothesis", "label", "annotations")
SIDES = ("premise", "hypothesis")
MARK = "*"

Span = tuple[int, int]


@dataclass(frozen=True)
class Highlights:
    """Pairs, and of each the words that a majority of its annotators marked.

    texts: the pairs; spans: for each pair and each of its two texts, where the marked words begin and end; words are
    separated by spaces, and punctuation belongs to them; unmarked: rows left out because no word has a majority.
    """

    texts: Texts
    spans: tuple[tuple[tuple[Span, ...], tuple[Span, ...]], ...]
    unmarked: int

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, rows: Sequence[int]) -> "Highlights":
        """These rows, in this order."""
        return Highlights(self.texts.select(rows), tuple(self.spans[row] for row in rows), self.unmarked)


def read_highlights(path: str | Path) -> Highlights:
    """marked(word) = more than half of the annotators have it between two `*`

    of a file of JSON lines, gzipped or not, each with premise, hypothesis, label and annotations, a list of objects
    with premise_marked and hypothesis_marked: the same texts with marks around words, as "a *red* *dog.*". Spaces may
    differ from the text's; anything else that does raises ValueError with file:line.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is a folder; expected a file" if path.is_dir() else f"no file {path}")
    texts: tuple[list[str], list[str]] = ([], [])
    labels, spans = [], []
    unmarked = 0
    encode = LabelEncoder(NLI_LABELS)
    for line, cells in json_rows(path, lambda available: FIELDS):
        *pair, label, annotations = cells
        where = f"{path.name}:{line}"
        pair = [_text(text, side, where) for text, side in zip(pair, SIDES, strict=True)]
        if not isinstance(label, str) or not isinstance(annotations, list) or not annotations:
            raise ValueError(f"{where}: expected a label that is a string, and annotations, a list of one or more")
        code = encode(label, path.name, line)
        first, second = (_majority(text, side, annotations, where) for text, side in zip(pair, SIDES, strict=True))
        if not first and not second:
            unmarked += 1
            continue
        for column, text in zip(texts, pair, strict=True):
            column.append(text)
        labels.append(int(code or 0))
        spans.append((first, second))
    if not spans:
        raise ValueError(f"{path.name} has no rows with a marked word; expected at least one")
    digests = ((path.name, sha256(path)),)
    pairs = Texts(texts[0], texts[1], labels, NLI_LABELS, source=path.name, digests=digests)
    return Highlights(pairs, tuple(spans), unmarked)


def _text(value: Any, field: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where}: expected a text in {field!r}; got {value!r:.80}")
    if MARK in value:
        raise ValueError(f"{where}: expected a text without {MARK!r}, which marks words; got {value!r:.80}")
    return value.strip()


def _majority(text: str, side: str, annotations: Sequence[Any], where: str) -> tuple[Span, ...]:
    """Spans of the words of `text` that more than half of the annotations mark; punctuation alone is no word."""
    words = list(re.finditer(r"\S+", text))
    votes = [0] * len(words)
    for annotation in annotations:
        marked = annotation.get(f"{side}_marked") if isinstance(annotation, dict) else None
        if not isinstance(marked, str):
            raise ValueError(f"{where}: expected annotations with a string in '{side}_marked'; got {annotation!r:.80}")
        for index, vote in enumerate(_marks(text, marked, where)):
            votes[index] += vote
    counted = zip(words, votes, strict=True)
    return tuple(
        word.span() for word, vote in counted if 2 * vote > len(annotations) and re.search(r"\w", word.group())
    )


def _marks(text: str, marked: str, where: str) -> list[bool]:
    """For each word of `text`, whether any part of it stands between two marks."""
    if marked.count(MARK) % 2:
        raise ValueError(f"{where}: expected marks {MARK!r} in pairs; got {marked!r:.80}")
    words = marked.split()
    if marked.replace(MARK, "").split() != text.split():
        raise ValueError(f"{where}: expected {text!r:.80} with marks {MARK!r}; got {marked!r:.80}")
    marks, inside = [], False
    for word in words:
        if word.strip(MARK):  # a mark with spaces on both sides belongs to no word
            marks.append(inside or MARK in word)
        inside ^= word.count(MARK) % 2 == 1
    return marks
