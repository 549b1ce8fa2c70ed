"""From token vectors to one vector a text (poolings), and from that to logits (classifiers)."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer import checks
from spinformer.attention import NeuroGameAttention
from spinformer.attention.output import NeuroGameOutput

# What a pooling gives: one vector a text (B, d), of several heads (B, H, d), and the game where one was played.
Pooled = tuple[Tensor, NeuroGameOutput | None]
# The heads of which "joint" is made.
JOINT = ("cls", "mean", "attention", "neurogame")


class Layers(nn.Module):
    """x_i + sum_l W_l x_i^l: the encoder's output x, and what a head takes from the layers below it.

    layers: their numbers, from 0, the embeddings. W is 0 at first: a new head begins with the encoder's output alone.
    """

    def __init__(self, dim: int, layers: Sequence[int]) -> None:
        super().__init__()
        self.layers = tuple(layers)
        self.weight = nn.Parameter(torch.zeros(len(self.layers), dim, dim))  # W_l, no module that would be filled anew

    def forward(self, hidden: Tensor, states: Sequence[Tensor]) -> Tensor:
        """hidden: x, (B, n, d); states: of the embeddings and of every layer, (B, n, d) each."""
        for layer, weight in zip(self.layers, self.weight, strict=True):
            checks.shape(f"what the encoder says of layer {layer}", states[layer], hidden.shape)
            hidden = hidden + functional.linear(states[layer], weight)
        return hidden


class FirstToken(nn.Module):
    """z = x_1, the vector of the first token, which BERT calls [CLS]."""

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens."""
        return hidden[:, 0], None


class Mean(nn.Module):
    """z = sum_i x_i / n over the real tokens."""

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens."""
        weights = mask.to(hidden.dtype) / mask.sum(-1, keepdim=True).to(hidden.dtype)
        return (weights[:, None] @ hidden).squeeze(1), None


class SoftmaxAttention(nn.Module):
    """z = sum_i a_i x_i,   a = softmax(w . tanh(W x_i + b)) over the real tokens."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, dim)
        self.score = nn.Linear(dim, 1, bias=False)

    def weights(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """a, (B, n)."""
        scores = self.score(torch.tanh(self.hidden(hidden))).squeeze(-1).float()
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens."""
        weights = self.weights(hidden, mask).to(hidden.dtype)
        return (weights[:, None] @ hidden).squeeze(1), None


class NeuroGamePooling(nn.Module):
    """z = sum_i alpha_i v_i, with alpha from the tokens' game (`NeuroGameAttention`), plus x_1 where `residual`."""

    def __init__(self, dim: int, residual: bool, **game: Any) -> None:
        super().__init__()
        self.attention = NeuroGameAttention(dim, **game)
        self.residual = residual

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens; special: (B, n), true for special tokens."""
        game = self.attention(hidden, mask, special=special)
        pooled = game.pooled + hidden[:, 0] if self.residual else game.pooled
        return pooled, game


class JointPooling(nn.Module):
    """z = (z_1 ... z_H), the vectors of several poolings, (B, H, d)."""

    def __init__(self, poolings: Iterable[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(poolings)

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens; special: (B, n), true for special tokens."""
        return torch.stack([pool(hidden, mask, special)[0] for pool in self.each], 1), None


class JointClassifier(nn.Module):
    """o_h = FFN_h(z_h): logits of every head, (B, H, C), from vectors (B, H, d)."""

    def __init__(self, classifiers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(classifiers)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors: (B, H, d)."""
        return torch.stack([ffn(z) for ffn, z in zip(self.each, vectors.unbind(1), strict=True)], 1)


def mean_answer(logits: Tensor) -> Tensor:
    """log (1/H) sum_h softmax(o_h), (B, C), of the logits (B, H, C) of several heads."""
    return logits.float().log_softmax(-1).logsumexp(1) - math.log(logits.shape[1])


def by_head(logits: Tensor, each: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """What a loss is the mean of: logits and target of every row, or of every row and head where there are several."""
    if each is None:
        return logits.float(), targets
    return each.float().flatten(0, 1), targets.repeat_interleave(each.shape[1], 0)


def pooling(head: str, dim: int, *, residual: bool, game: dict[str, Any]) -> nn.Module:
    """The pooling of this head."""
    if head == "joint":
        return JointPooling(pooling(one, dim, residual=residual, game=game) for one in JOINT)
    if head == "neurogame":
        return NeuroGamePooling(dim, residual, **game)
    if head == "attention":
        return SoftmaxAttention(dim)
    return Mean() if head == "mean" else FirstToken()


def classifier(head: str, dim: int, labels: int, *, layers: int, dropout: float) -> nn.Module:
    """h = GELU(W h + b), `layers` times, then logits o = W h + b (Eqs. 28-29); the released head has its own."""
    if head == "released":
        return released(dim, labels, dropout)
    if head == "joint":
        return JointClassifier(classifier(one, dim, labels, layers=layers, dropout=dropout) for one in JOINT)
    steps: list[nn.Module] = []
    for _ in range(layers):
        steps += [nn.Dropout(dropout), nn.Linear(dim, dim), nn.GELU()]
    return nn.Sequential(*steps, nn.Dropout(dropout), nn.Linear(dim, labels))


def released(dim: int, labels: int, dropout: float) -> nn.Module:
    """The head that the authors' published scripts run in place of the game: d -> 128, tanh, then 256 and 128, each
    with layer norm, GELU and dropout, then the logits.
    """

    def block(wide: int, narrow: int) -> list[nn.Module]:
        return [nn.Linear(wide, narrow), nn.LayerNorm(narrow), nn.GELU(), nn.Dropout(dropout)]

    return nn.Sequential(nn.Linear(dim, 128), nn.Tanh(), *block(128, 256), *block(256, 128), nn.Linear(128, labels))
