"""Words of texts as players: which tokens make up which word."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from spinformer import checks
from spinformer.data.texts import Texts


def _joining() -> str:
    """Characters that belong to the one before them: accents, vowel signs, joiners, variation selectors."""
    places = chain(range(0x20000), range(0xE0000, 0xE0200))  # Unicode has such characters nowhere else
    return "".join(chr(place) for place in places if unicodedata.category(chr(place)) in ("Mn", "Mc", "Me", "Cf"))


# A word is a run of letters, digits and underscores with what joins them, runs joined by single apostrophes or hyphens;
# every other mark that is no space stands alone, an emoji with all that it is made of.
_JOIN = re.escape(_joining())
_RUN = rf"\w[\w{_JOIN}]*"
_EMOJI = rf"[^\w\s{_JOIN}][{_JOIN}\U0001F3FB-\U0001F3FF]*"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
WORD = re.compile(rf"{_RUN}(?:['’\-]{_RUN})*|{_FLAG}|{_EMOJI}(?:(?<=\u200d){_EMOJI})*")


@dataclass(frozen=True)
class Words:
    """B texts or pairs as a batch for a model, with the word of every token.

    inputs: what the tokenizer gives (input_ids, attention_mask ...), each (B, n); owner: (B, n), the number of the word
    that a token belongs to, -1 for special tokens, tokens of space alone and padding; counts: (B,), words of each;
    words: the words, premise first; sides: for each word 0 (first text) or 1 (second).
    """

    inputs: dict[str, Tensor]
    owner: Tensor
    counts: Tensor
    words: tuple[tuple[str, ...], ...]
    sides: tuple[tuple[int, ...], ...]

    def to(self, device: torch.device | str) -> "Words":
        """On another device."""
        inputs = {name: value.to(device) for name, value in self.inputs.items()}
        return Words(inputs, self.owner.to(device), self.counts.to(device), self.words, self.sides)

    def rows(self, start: int, stop: int) -> "Words":
        """The texts from `start` to `stop`, with the padding that they have here."""
        part = slice(start, stop)
        inputs = {name: value[part] for name, value in self.inputs.items()}
        return Words(inputs, self.owner[part], self.counts[part], self.words[part], self.sides[part])

    @property
    def mask(self) -> Tensor:
        """(B, W): true where a text has that many words, W being the most words of any."""
        most = int(self.counts.max())
        return torch.arange(most, device=self.counts.device) < self.counts[:, None]

    def tokens(self, coalitions: Tensor) -> Tensor:
        """Visible tokens, (B, K, n), of coalitions of words, (B, K, W): special tokens always, padding never."""
        owner = self.owner[:, None].expand(-1, coalitions.shape[1], -1)
        member = coalitions.gather(2, owner.clamp_min(0))
        return torch.where(owner >= 0, member, self.inputs["attention_mask"][:, None].bool())

    def sums(self, tokens: Tensor) -> Tensor:
        """Sums over the tokens of each word: (B, n) or (B, n, c) -> (B, W) or (B, W, c); 0 for padding."""
        most = int(self.counts.max())
        member = self.owner[:, None] == torch.arange(most, device=self.owner.device)[:, None]  # (B, W, n)
        columns = tokens if tokens.dim() == 3 else tokens[..., None]
        found = member.to(tokens.dtype) @ columns  # one order of addition, unlike scatter_add on GPUs
        return found if tokens.dim() == 3 else found.squeeze(-1)


def split(tokenizer: Any, texts: Texts, max_length: int) -> Words:
    """Tokenise texts and give every token to the word that it is part of.

    Words that a tokenizer joins in one token (as many do with "...") are one player, under the name of all. Words that
    truncation cuts off are no players. A text of which no word is left is an error.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError("words are found by the tokens' offsets, which only fast tokenizers give")
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
        return_offsets_mapping=True,
        return_attention_mask=True,
    )
    columns = [texts.first] if second is None else [texts.first, second]
    owners, words, sides = [], [], []
    for row, offsets in enumerate(encoded["offset_mapping"]):
        owner, found, side = _owners(offsets, encoded.sequence_ids(row), [column[row] for column in columns])
        if not found:
            raise ValueError(f"row {row} of {texts.source}, counted from 0, has no words")
        owners.append(owner)
        words.append(found)
        sides.append(side)
    inputs = {name: torch.tensor(value) for name, value in encoded.items() if name != "offset_mapping"}
    counts = torch.tensor([len(found) for found in words])
    return Words(inputs, torch.tensor(owners), counts, tuple(words), tuple(sides))


def _owners(
    offsets: Sequence[tuple[int, int]], sequences: Sequence[int | None], texts: Sequence[str]
) -> tuple[list[int], tuple[str, ...], tuple[int, ...]]:
    """The word of each token, the words that have a token, and their sides."""
    spans = [[match.span() for match in WORD.finditer(text)] for text in texts]
    owner: list[int] = []
    found: list[list[int]] = []  # of each player: its side, the first and the last of its words in `spans`
    for (start, end), side in zip(offsets, sequences, strict=True):
        places = [] if side is None or end <= start else _overlapped(spans[side], start, end)
        if side is None or not places:
            owner.append(-1)
            continue
        if found and found[-1][0] == side and places[0] <= found[-1][2]:  # goes on with the word before it
            found[-1][2] = max(found[-1][2], places[-1])
        else:
            found.append([side, places[0], places[-1]])
        owner.append(len(found) - 1)
    words = tuple(texts[side][spans[side][first][0] : spans[side][last][1]] for side, first, last in found)
    return owner, words, tuple(side for side, _, _ in found)


def _overlapped(spans: Sequence[tuple[int, int]], start: int, end: int) -> list[int]:
    """The words that a token overlaps: one as a rule, several where it spans them, none where it is space."""
    return [place for place, (begin, stop) in enumerate(spans) if begin < end and start < stop]
