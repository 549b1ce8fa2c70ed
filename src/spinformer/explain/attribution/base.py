"""What every attribution method is, and the few steps that they share."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from spinformer.data.words import Words
from spinformer.models.masked import MaskedClassifier
from spinformer.rng import uniforms

BITS = 62  # of a coalition in one integer


class Attribution(Protocol):
    """method(words) -> scores (B, W)

    Scores of words towards the class that the classifier decides for on the whole text, 0 for padding; float32, on the
    device of `words`. A text's scores depend neither on the batch nor on its padding. name: for tables; passes: forward
    passes of the model for a text of W words, and backward passes where there are any.
    """

    @property
    def name(self) -> str:
        """For tables and files."""

    @property
    def passes(self) -> str:
        """What it costs a text."""

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""


def in_batches(scores: Callable[[Words], Tensor], words: Words, size: int) -> Tensor:
    """scores(words), computed for at most `size` texts at a time."""
    whole = torch.zeros(words.mask.shape, device=words.mask.device)
    for start in range(0, len(whole), size):
        found = scores(words.rows(start, start + size))
        whole[start : start + size, : found.shape[1]] = found.to(whole)
    return whole


def of_class(probabilities: Tensor, target: Tensor) -> Tensor:
    """The column of each text's class: (B, classes), (B,) -> (B,)."""
    return probabilities.gather(1, target[:, None]).squeeze(1)


def text_seed(words: Words, row: int, seed: int) -> Tensor:
    """A 62-bit seed that depends on `seed` and on the words of this text alone."""
    content = json.dumps([seed, words.words[row], words.sides[row]]).encode()
    return torch.tensor(int.from_bytes(hashlib.sha256(content).digest()[:8], "big") >> 2)


def text_uniforms(words: Words, row: int, seed: int, draws: int, columns: int) -> Tensor:
    """Uniform numbers for this text, (draws, columns), on the CPU."""
    return uniforms(text_seed(words, row, seed), 1, draws, columns, torch.device("cpu"))[0]


def distinct_rows(coalitions: Tensor) -> tuple[Tensor, Tensor]:
    """The different rows of (K, W) booleans in the order of unique(dim=0), and the place of each row among them, (K,).

    Many times faster than that on bits: rows are compared as whole numbers of up to 62 bits, the first column highest.
    """
    blocks = coalitions.split(BITS, 1)
    codes = torch.stack([(block.long() << _shifts(block.shape[1])).sum(1) for block in blocks], 1)
    if len(blocks) > 1:
        found, place = codes.unique(dim=0, return_inverse=True)
    else:
        found, place = codes[:, 0].unique(return_inverse=True)
        found = found[:, None]
    bits = [codes[:, None] >> _shifts(block.shape[1]) & 1 for codes, block in zip(found.T, blocks, strict=True)]
    return torch.cat(bits, 1).bool(), place


def _shifts(width: int) -> Tensor:
    return torch.arange(width - 1, -1, -1)


def confidences(classifier: MaskedClassifier, words: Words, coalitions: Sequence[Tensor]) -> list[Tensor]:
    """v(C) = p_y(C) for coalitions of each text, (K, words of it) booleans -> (K,), float64, all on the CPU.

    The first coalition of a text must be all of its words: y is decided there. One pass for each different coalition.
    """
    width = words.mask.shape[1]
    distinct, places = zip(*map(distinct_rows, coalitions), strict=True)
    texts = torch.arange(len(coalitions)).repeat_interleave(torch.tensor([len(rows) for rows in distinct]))
    padded = torch.cat([functional.pad(rows, (0, width - rows.shape[1])) for rows in distinct])
    found = classifier.of_rows(words, texts, padded).cpu().double().split([len(rows) for rows in distinct])
    values = [part[place] for part, place in zip(found, places, strict=True)]
    return [part[:, part[0].argmax()] for part in values]
