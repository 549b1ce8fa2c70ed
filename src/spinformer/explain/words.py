"""Words of texts as players: which tokens make up which word."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer.data.texts import Texts

# A word is a run of letters, digits and underscores, joined by single apostrophes or hyphens; every other mark that is
# no space stands alone.
WORD = re.compile(r"\w+(?:['’\-]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Words:
    """B texts or pairs as a batch for a model, with the word of every token.

    inputs: what the tokenizer gives (input_ids, attention_mask ...), each (B, n); owner: (B, n), the number of the word
    that a token belongs to, -1 for special tokens and padding; counts: (B,), words of each; words: the words, premise
    first; sides: for each word 0 (first text) or 1 (second).
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


def split(tokenizer: Any, texts: Texts, max_length: int) -> Words:
    """Tokenise texts and give every token to the word in which it begins.

    Words that truncation cuts off are not players. A text of which no word is left is an error.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError("words are found by the tokens' offsets, which only fast tokenizers give")
    second = None if texts.second is None else list(texts.second)
    encoded = tokenizer(
        list(texts.first), second, truncation=True, max_length=max_length, padding=True, return_offsets_mapping=True
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
    spans = [[(match.start(), match.end()) for match in WORD.finditer(text)] for text in texts]
    owner, words, sides = [], [], []
    current: tuple[int, int] | None = None
    for (start, end), side in zip(offsets, sequences, strict=True):
        place = None if side is None or end <= start else _find(spans[side], start, end)
        if place is None:
            owner.append(-1)
            continue
        if (side, place) != current:
            current = (side, place)  # type: ignore[assignment]
            begin, stop = spans[side][place]  # type: ignore[index]
            words.append(texts[side][begin:stop])  # type: ignore[index]
            sides.append(int(side))  # type: ignore[arg-type]
        owner.append(len(words) - 1)
    return owner, tuple(words), tuple(sides)


def _find(spans: Sequence[tuple[int, int]], start: int, end: int) -> int | None:
    """The word that a token overlaps first (a token may begin with the space before its word)."""
    for place, (begin, stop) in enumerate(spans):
        if begin < end and start < stop:
            return place
    return None
