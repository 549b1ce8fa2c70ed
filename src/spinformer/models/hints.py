"""Hints: what the layers of a classifier make of the words that it sees. A game learns from them beside the answers.

An answer is a number or a few; the hidden states behind it are thousands, so a masked pass teaches more. (Romero et
al., 2015, call the hidden states that one network learns from another its hints.)
"""

from collections.abc import Sequence

import torch
from torch import Tensor

PARTS = 3  # layers above the embeddings from which hints are taken: those after a third, two thirds and all of them


def hint_layers(count: int) -> tuple[int, ...]:
    """Of a classifier with `count` layers above the embeddings."""
    return tuple(sorted({-(-count * part // PARTS) for part in range(1, PARTS + 1)}))


def hints_of(states: Sequence[Tensor], visible: Tensor | None) -> Tensor:
    """The mean hidden state of the visible tokens in each of `hint_layers`, (R, layers d).

    states: of the embeddings and of every layer, (R, n, d) each; visible: (R, n), 1 for tokens that are seen, None
    where all are.
    """
    chosen = [states[layer] for layer in hint_layers(len(states) - 1)]
    if visible is None:
        return torch.cat([state.float().mean(1) for state in chosen], -1)
    seen = visible.to(chosen[0].device).float()
    share = seen / seen.sum(1, keepdim=True).clamp_min(1)
    return torch.cat([(share[:, None] @ state.float()).squeeze(1) for state in chosen], -1)
