"""Players that are larger than words: sentences, and spans that a caller names."""

import re
from collections.abc import Sequence

import torch

from spinformer.data.word_pattern import WORD
from spinformer.data.words import Words

# From-to in characters; the spans of one text; those of a text or of both texts of a pair.
Span = tuple[int, int]
Spans = Sequence[Span]

# Where a sentence may end: a line break, a mark that ends sentences everywhere, or a stop and what closes it, before a
# space.
_END = re.compile(r"\s*\n\s*|[。！？｡]+[」』”’）)\"']*|[.!?…]+[\"'”’»)\]]*(?=\s)")
# A stop after one of these, or after a single letter, ends no sentence.
_SHORT = re.compile(
    r"(?:\b[^\W\d_]|\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|e\.g|i\.e|cf|no|vol|fig|al|inc|ltd|co|u\.s|a\.m|p\.m))\.$",
    re.IGNORECASE,
)


def sentence_spans(text: str) -> list[Span]:
    """Where each sentence begins and ends, without the space around it; a piece without a word belongs to the one
    before it.
    """
    spans: list[Span] = []
    start = 0
    for stop in (*(end.end() for end in _END.finditer(text) if _ends(text, end)), len(text)):
        piece = text[start:stop]
        if WORD.search(piece):
            begin = start + len(piece) - len(piece.lstrip())
            spans.append((begin, start + len(piece.rstrip())))
        elif spans and piece.strip():
            spans[-1] = spans[-1][0], start + len(piece.rstrip())
        start = stop
    return spans


def group_words(words: Words, texts: Sequence[Sequence[str]], spans: Sequence[Sequence[Spans]]) -> Words:
    """The spans of each text as players, each with all words that it touches; words in no span are always there.

    texts: of each row the text, or both; spans: for each of them. A span of which the model reads no word is left out.
    """
    owners, names, sides, places = [], [], [], []
    for row, own in enumerate(texts):
        groups, kept = _groups(words, row, own, spans[row])
        member = torch.tensor([*groups, -1])  # the last for tokens of no word
        owners.append(member[words.owner[row]])
        names.append(tuple(own[side][start:end] for side, start, end in kept))
        sides.append(tuple(side for side, _, _ in kept))
        places.append(tuple((start, end) for _, start, end in kept))
    counts = torch.tensor([len(row) for row in names])
    told = tuple(names), tuple(sides), words.unread, tuple(places)
    return Words(words.inputs, torch.stack(owners), counts, *told, words)


def groups_of(players: Words) -> torch.Tensor:
    """The player that each word of `players.parts` belongs to, (B, W), -1 where it belongs to none."""
    parts = players.parts
    assert parts is not None
    groups = torch.full(parts.mask.shape, -1, device=parts.owner.device)
    rows, tokens = (parts.owner >= 0).nonzero(as_tuple=True)
    groups[rows, parts.owner[rows, tokens]] = players.owner[rows, tokens]
    return groups


def _groups(
    words: Words, row: int, texts: Sequence[str], spans: Sequence[Spans]
) -> tuple[list[int], list[tuple[int, int, int]]]:
    """The player of each word of a row, and the players: side, start and end."""
    if len(spans) != len(texts):
        raise ValueError(f"expected spans for each of {len(texts)} texts; got {len(spans)}")
    groups = [-1] * len(words.words[row])
    players: list[tuple[int, int, int]] = []
    for side, text in enumerate(texts):
        for span in sorted(_checked(span, text) for span in spans[side]):
            inside = [
                index
                for index, (of, (start, end)) in enumerate(zip(words.sides[row], words.places[row], strict=True))
                if of == side and start < span[1] and span[0] < end
            ]
            shared = [index for index in inside if groups[index] >= 0]
            if shared:
                raise ValueError(f"spans must not share a word; two of them hold {words.words[row][shared[0]]!r}")
            if not inside:
                continue
            for index in inside:
                groups[index] = len(players)
            first, last = (words.places[row][index] for index in (inside[0], inside[-1]))
            players.append((side, min(span[0], first[0]), max(span[1], last[1])))
    if not players:
        raise ValueError("expected a span with a word that the model reads; got none")
    return groups, players


def _checked(span: Span, text: str) -> Span:
    try:
        start, end = span
        whole = isinstance(start, int) and isinstance(end, int)
    except (TypeError, ValueError):
        whole = False
    if not whole or not 0 <= start < end <= len(text):
        raise ValueError(f"a span must be two numbers from-to within the text's {len(text)} characters; got {span!r}")
    return start, end


def _ends(text: str, end: re.Match[str]) -> bool:
    """Whether a sentence ends here: not after an abbreviation, nor before a small letter in a text with capitals."""
    if not end.group().startswith((".", "…", "!", "?")):
        return True
    goes_on = text[end.end() :].lstrip()[:1].islower() and text != text.lower()
    return not goes_on and not _SHORT.search(text, 0, end.start() + 1)
