"""The attending form of a game head, what it takes from a pass: the words of a coalition read each other.

How a query then reads them: `spinformer.models.attending_readout`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer._base.precision import full_precision
from spinformer.data.words import Words

if TYPE_CHECKING:
    from spinformer.models.game_head import GameHeadConfig

# Logarithms of weights are held within this, so that no word drowns another beyond what float32 resolves.
RANGE = 8.0
# Weight of the empty coalition, beside which every word counts.
FLOOR = 1e-3
# Products e^{q_i . k_j} v_j of one text that are kept, at most: those of some 100 words.
PRODUCTS = 2**21
# Words beyond which a few coalitions, as training has, are summed faster without these products.
FEW = 40
# Coalitions of long texts whose sums are kept: as many as `spinformer.games.toggles` asks about at most.
KEPT = 16


@dataclass(frozen=True)
class Attending:
    """What one pass over B texts of W words gives, for every coalition.

    weights: e^{q_i . k_j}, (B, H, W, 1 + W), i first; values: v_j, (B, H, 1 + W, d / H); j = 0 is the context, which is
    in every coalition; words: a_i, (B, W, d); query: z_0, (B, d).
    """

    weights: Tensor
    values: Tensor
    words: Tensor
    query: Tensor

    @property
    def width(self) -> int:
        """Numbers that the readout makes for each coalition of a text: W d."""
        return self.words[0].numel()

    @property
    def short(self) -> bool:
        """Whether the products e^{q_i . k_j} v_j are few enough to be kept: then sums over j are matrix products."""
        return (1 + self.words.shape[1]) * self.width <= PRODUCTS

    @cached_property
    def products(self) -> Tensor:
        """e^{q_i . k_j} v_j, (B, 1 + W, W d), j first."""
        return (self.weights[..., None] * self.values[:, :, None]).permute(0, 3, 2, 1, 4).flatten(2)

    @cached_property
    def by_source(self) -> Tensor:
        """e^{q_i . k_j}, (B, H, 1 + W, W), j first: rows of it are taken faster than columns."""
        return self.weights.mT.contiguous()

    def sums(self, members: Tensor) -> tuple[Tensor, Tensor]:
        """Over j in each coalition, (B, K, W) numbers 0 or 1: of weights, (B, K, W, H), and of values, (B, K, W, d)."""
        learns = torch.is_grad_enabled()
        if self.short and not (learns and members.shape[2] > FEW):
            return sums(self.weights, self.products, members)
        if learns or members.is_cuda:
            return self._sums_together(members)
        each = [self.sums_of(row, one) for row, several in enumerate(members) for one in several]
        total, moved = (torch.stack(part).unflatten(0, members.shape[:2]) for part in zip(*each, strict=True))
        return total.mT, moved.transpose(2, 3).flatten(3)

    def sums_of(self, row: int, members: Tensor) -> tuple[Tensor, Tensor]:
        """Over j in one coalition of one text, (W,): of weights, (H, W), and of values, (H, W, d / H).

        Without gradients the last KEPT are kept: the same coalitions are read, and toggled by words and by pairs.
        """
        if torch.is_grad_enabled():
            return self._sums_of(row, members)
        key = (row, members.bool().cpu().numpy().tobytes())
        found = self._kept.pop(key, None) or self._sums_of(row, members)
        self._kept[key] = found
        while len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        return found

    @cached_property
    def _kept(self) -> dict[tuple[int, bytes], tuple[Tensor, Tensor]]:
        return {}

    def _sums_of(self, row: int, members: Tensor) -> tuple[Tensor, Tensor]:
        inside = functional.pad(members, (1, 0), value=1.0).nonzero().squeeze(1)
        values = functional.pad(self.values[row].index_select(1, inside), (0, 1), value=1.0)
        moved = self.by_source[row].index_select(1, inside).mT @ values  # (H, W, d / H + 1)
        return moved[..., -1], moved[..., :-1]

    def _sums_together(self, members: Tensor) -> tuple[Tensor, Tensor]:
        """As `sums`, of all coalitions by one product for each head of each text; the values of others are made 0."""
        inside = functional.pad(members, (1, 0), value=1.0).mT[:, None, :, :, None]  # (B, 1, 1 + W, K, 1)
        values = functional.pad(self.values, (0, 1), value=1.0)[:, :, :, None] * inside
        moved = (self.weights @ values.flatten(3)).unflatten(3, values.shape[3:])  # (B, H, W, K, d / H + 1)
        moved = moved.permute(0, 3, 2, 1, 4)
        return moved[..., -1], moved[..., :-1].flatten(3)

    def by_player(self, groups: Tensor, always: Tensor, players: int) -> tuple[Tensor, Tensor]:
        """Weights, (B, H, W, 1 + n), and products, (B, 1 + n, W d), summed over the words of each of n players.

        groups: (B, W), the player of each word; always: (B, W), true for words that count to the context.
        """
        owner = functional.pad(torch.where(always, 0, torch.where(groups < 0, players + 1, groups + 1)), (1, 0))
        weights, products = [], []
        for row, each in enumerate(owner):
            own = [(each == player).nonzero().squeeze(1) for player in range(players + 1)]
            weights.append(torch.stack([self.weights[row][..., words].sum(-1) for words in own], -1))
            moved = [self.weights[row][..., words] @ self.values[row][:, words] for words in own]  # (H, W, d / H)
            products.append(torch.stack(moved).transpose(1, 2).flatten(1))
        return torch.stack(weights), torch.stack(products)

    def select(self, rows: Sequence[int], words: int) -> "Attending":
        """Of these texts, with their first `words` words alone."""
        weights, values = self.weights[rows, :, :words, : 1 + words], self.values[rows, :, : 1 + words]
        return Attending(weights, values, self.words[rows, :words], self.query[rows])


class AttendingMap(nn.Module):
    """q_i, k_i, v_i, a_i = linear(sum over the tokens t of word i of gelu(linear(x_t)))

    x_t: the hidden states of token t in the chosen layers, each normalised. The context is the mean over the special
    tokens, which are never hidden; in a model without any, over all tokens.
    """

    def __init__(self, config: "GameHeadConfig") -> None:
        super().__init__()
        self.layers, self.heads = config.layers, config.heads
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in config.layers)
        self.body = nn.Linear(config.width * len(config.layers), config.hidden)
        self.words = nn.Linear(config.hidden, 4 * config.dim)
        self.context = nn.Linear(config.hidden, 3 * config.dim)

    @full_precision
    def forward(self, hidden_states: Sequence[Tensor], words: Words) -> Attending:
        """From the hidden states of the encoder, each (B, n, width)."""
        x = torch.cat(
            [norm(hidden_states[layer].float()) for norm, layer in zip(self.norms, self.layers, strict=True)], -1
        )
        inner = functional.gelu(self.body(x))  # (B, n, hidden)
        query, key, value, own = words.sums(self.words(inner)).chunk(4, -1)  # (B, W, d) each
        context_key, context_value, start = self.context(_context(inner, words)).chunk(3, -1)  # (B, d) each
        key, value = (
            torch.cat([first[:, None], rest], 1) for first, rest in ((context_key, key), (context_value, value))
        )
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, value))
        return Attending(bounded_exp(query @ key.mT / math.sqrt(query.shape[-1])), value, own, start)


def sums(weights: Tensor, products: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """Over the members of coalitions, (B, K, n): of weights, (B, H, W, 1 + n), and of products, (B, 1 + n, W d).

    (B, K, W, H) and (B, K, W, d)
    """
    with_context = functional.pad(members, (1, 0), value=1.0)
    total = (with_context @ weights.flatten(1, 2).mT).unflatten(-1, weights.shape[1:3])
    return total.mT.contiguous(), (with_context @ products).unflatten(-1, (weights.shape[2], -1))


def bounded_exp(score: Tensor) -> Tensor:
    """e^{R tanh(s / R)}: e^s with s drawn into -R .. R, where R is RANGE.

    By a function that takes a third of the time of tanh: tanh(x) = 2 sigmoid(2 x) - 1.
    """
    return (2 * RANGE * torch.sigmoid(score * (2 / RANGE)) - RANGE).exp()


def _context(inner: Tensor, words: Words) -> Tensor:
    """The mean over special tokens, or over all where there are none: (B, n, hidden) -> (B, hidden)."""
    present = words.inputs["attention_mask"].to(inner.device).bool()
    special = (words.owner.to(inner.device) < 0) & present
    chosen = torch.where(special.any(-1, keepdim=True), special, present).to(inner.dtype)
    return (chosen[:, None] @ inner).squeeze(1) / chosen.sum(-1, keepdim=True).clamp_min(1)
