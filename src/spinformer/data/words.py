"""Words of texts as players: which tokens make up which word."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.data.texts import Texts
from spinformer.data.word_pattern import UNSPACED, WORD


@dataclass(frozen=True)
class Words:
    """B texts or pairs as a batch for a model, with the word of every token.

    inputs: what the tokenizer gives (input_ids, attention_mask ...), each (B, n); owner: (B, n), the index of the word
    that a token belongs to, -1 for special tokens, tokens of space alone and padding; counts: (B,), the number of words
    of each; words: the words, premise first; sides: for each word 0 (first text) or 1 (second); unread: the end of each
    text that was cut off, empty where nothing was; () where that is not known; places: for each word where it begins
    and ends in its text, in characters; () where that is not known; parts: the words that these are made of, where they
    are sentences or spans (`spinformer.data.players`), None where they are words.
    """

    inputs: dict[str, Tensor]
    owner: Tensor
    counts: Tensor
    words: tuple[tuple[str, ...], ...]
    sides: tuple[tuple[int, ...], ...]
    unread: tuple[tuple[str, ...], ...] = ()
    places: tuple[tuple[tuple[int, int], ...], ...] = ()
    parts: "Words | None" = None

    def to(self, device: torch.device | str) -> "Words":
        """On another device."""
        inputs = {name: value.to(device) for name, value in self.inputs.items()}
        parts = None if self.parts is None else self.parts.to(device)
        return replace(self, inputs=inputs, owner=self.owner.to(device), counts=self.counts.to(device), parts=parts)

    def rows(self, start: int, stop: int) -> "Words":
        """The texts from `start` to `stop`, with the padding that they have here."""
        part = slice(start, stop)
        inputs = {name: value[part] for name, value in self.inputs.items()}
        told = self.words[part], self.sides[part], self.unread[part], self.places[part]
        parts = None if self.parts is None else self.parts.rows(start, stop)
        return Words(inputs, self.owner[part], self.counts[part], *told, parts)

    def tokens_alone(self) -> "Words":
        """What a model needs, without the text of the words: little to send to another process."""
        return replace(self, words=(), sides=(), unread=(), places=())

    @property
    def mask(self) -> Tensor:
        """(B, W), true for real words; W: the number of words of the longest text."""
        longest = int(self.counts.max())
        return torch.arange(longest, device=self.counts.device) < self.counts[:, None]

    def tokens(self, coalitions: Tensor) -> Tensor:
        """Visible tokens, (B, K, n), of coalitions of words, (B, K, W): special tokens always, padding never."""
        owner = self.owner[:, None].expand(-1, coalitions.shape[1], -1)
        member = coalitions.gather(2, owner.clamp_min(0))
        return torch.where(owner >= 0, member, self.inputs["attention_mask"][:, None].bool())

    def sums(self, tokens: Tensor) -> Tensor:
        """Sums over the tokens of each word: (B, n) or (B, n, c) -> (B, W) or (B, W, c); 0 for padding."""
        longest = int(self.counts.max())
        member = self.owner[:, None] == torch.arange(longest, device=self.owner.device)[:, None]  # (B, W, n)
        columns = tokens if tokens.dim() == 3 else tokens[..., None]
        sums = member.to(tokens.dtype) @ columns  # one order of addition, unlike scatter_add on GPUs
        return sums if tokens.dim() == 3 else sums.squeeze(-1)


class NoWordsError(ValueError):
    """The tokenizer reads no word of a text; row: its row, counted from 0; source: where the texts came from."""

    def __init__(self, row: int, source: str) -> None:
        super().__init__(row, source)
        self.row, self.source = row, source

    def __str__(self) -> str:
        return f"row {self.row} of {self.source}, counted from 0, has no words"


def split_words(tokenizer: Any, texts: Texts, max_length: int) -> Words:
    """Tokenise texts and assign every token to the word that it is part of.

    Words that a tokenizer joins in one token (as many do with "...") are one word, with the text of all. Where a text
    is written without spaces, as Chinese and Thai are, its words are what the tokenizer splits first, or its tokens.
    Words that truncation cuts off are left out. A text of which no word is left is an error.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError("splitting into words needs the offsets of tokens, which only fast tokenizers give")
    checks.instance("texts", texts, Texts)
    checks.at_least("max_length", max_length, 1)
    if not len(texts):
        raise ValueError(f"{texts.source}: no rows to split into words")
    if tokenizer.pad_token_id is None and len(texts) > 1:
        raise ValueError("the tokenizer has no padding token, which batches need; set tokenizer.pad_token")
    second = None if texts.second is None else list(texts.second)
    encoded = tokenizer(
        list(texts.first),
        second,
        truncation=True,
        max_length=max_length,
        padding=len(texts) > 1,
        padding_side="right",  # positions, and so the answers of some decoders, do not move with the batch
        return_offsets_mapping=True,
        return_attention_mask=True,
    )
    longest = max(map(len, encoded["input_ids"]))
    if longest > max_length:
        raise ValueError(f"max_length must leave room for words beside the special tokens; got {max_length}")
    columns = [texts.first] if second is None else [texts.first, second]
    owners, words, sides, unread, places = [], [], [], [], []
    for row, offsets in enumerate(encoded["offset_mapping"]):
        sequences, own = encoded.sequence_ids(row), [column[row] for column in columns]
        first_splits = encoded.word_ids(row) if hasattr(encoded, "word_ids") else [None] * len(offsets)
        owner, row_words, row_sides, row_places = _owners(offsets, sequences, own, first_splits)
        if not row_words:
            raise NoWordsError(row, texts.source)
        full = sum(encoded["attention_mask"][row]) >= max_length
        unread.append(_unread(offsets, sequences, own) if full else ("",) * len(own))
        owners.append(owner)
        words.append(row_words)
        sides.append(row_sides)
        places.append(row_places)
    inputs = {name: torch.tensor(value) for name, value in encoded.items() if name != "offset_mapping"}
    counts = torch.tensor([len(row_words) for row_words in words])
    told = tuple(words), tuple(sides), tuple(unread), tuple(places)
    return Words(inputs, torch.tensor(owners), counts, *told)


def _owners(
    offsets: Sequence[tuple[int, int]],
    sequences: Sequence[int | None],
    texts: Sequence[str],
    first_splits: Sequence[int | None],
) -> tuple[list[int], tuple[str, ...], tuple[int, ...], tuple[tuple[int, int], ...]]:
    """The word of each token; the words that have a token, their sides and places."""
    spans = []
    for number, text in enumerate(texts):
        if UNSPACED.search(text) is None:
            spans.append([match.span() for match in WORD.finditer(text)])
            continue
        tokens = [
            (begin, split)
            for (begin, stop), of, split in zip(offsets, sequences, first_splits, strict=True)
            if of == number and stop > begin
        ]
        spans.append([part for match in WORD.finditer(text) for part in _pieces(text, *match.span(), tokens)])
    owner: list[int] = []
    players: list[list[int]] = []  # of each: its side, the index of its first span and that of its last
    for (start, end), side in zip(offsets, sequences, strict=True):
        overlap = range(0) if side is None or end <= start else _overlapping(spans[side], start, end)
        if side is None or not overlap:
            owner.append(-1)
            continue
        if players and players[-1][0] == side and overlap[0] <= players[-1][2]:  # continues the word before it
            players[-1][2] = max(players[-1][2], overlap[-1])
        else:
            players.append([side, overlap[0], overlap[-1]])
        owner.append(len(players) - 1)
    sides = tuple(side for side, _, _ in players)
    places = tuple((spans[side][first][0], spans[side][last][1]) for side, first, last in players)
    words = tuple(texts[side][start:end] for side, (start, end) in zip(sides, places, strict=True))
    return owner, words, sides, places


def _pieces(text: str, start: int, end: int, tokens: Sequence[tuple[int, int | None]]) -> list[tuple[int, int]]:
    """A word as it is; a run without spaces cut where the tokenizer splits first, or else at its tokens.

    tokens: where each token of the text begins, and the number of the tokenizer's first split that it belongs to.
    """
    if not UNSPACED.match(text, start):
        return [(start, end)]
    letters = {match.start() for match in UNSPACED.finditer(text, start, end)}
    inside = [(begin, split) for begin, split in tokens if start <= begin < end]
    cuts = {begin for (begin, split), (_, before) in zip(inside[1:], inside, strict=False) if split != before} or {
        begin for begin, _ in inside
    }
    starts = sorted({start, *(cuts & letters)})
    return list(zip(starts, [*starts[1:], end], strict=True))


def _unread(
    offsets: Sequence[tuple[int, int]], sequences: Sequence[int | None], texts: Sequence[str]
) -> tuple[str, ...]:
    """The end of each text that has no token; empty where it holds no word."""
    ends = [max((end for (_, end), of in zip(offsets, sequences, strict=True) if of == side), default=0)
            for side in range(len(texts))]  # fmt: skip
    rest = (text[end:] for text, end in zip(texts, ends, strict=True))
    return tuple(part if WORD.search(part) else "" for part in rest)


def _overlapping(spans: Sequence[tuple[int, int]], start: int, end: int) -> range:
    """Indices of the spans that a token overlaps: usually one, several where it covers them, none where it is space."""
    first, last = bisect_right(spans, start, key=itemgetter(1)), bisect_left(spans, end, key=itemgetter(0))
    return range(first, last)
