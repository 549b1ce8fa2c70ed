"""The attending form of a game head: the words of a coalition read each other, then a query reads them."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

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


class Attending(NamedTuple):
    """What one pass over B texts of W words gives, for every coalition.

    values: e^{q_i . k_j} v_j, (B, 1 + W, W H d / H), j first, then i; weights: e^{q_i . k_j}, (B, 1 + W, W H); j = 0 is
    the context, which is in every coalition; words: a_i, (B, W, d); query: z_0, (B, d).
    """

    values: Tensor
    weights: Tensor
    words: Tensor
    query: Tensor

    def select(self, rows: Sequence[int], words: int) -> "Attending":
        """Of these texts, with their first `words` words alone."""
        total = self.words.shape[1]
        kept = []
        for part in (self.values, self.weights):
            by_word = part[rows, : 1 + words].unflatten(-1, (total, -1))  # (b, 1 + words, W, ...)
            kept.append(by_word[:, :, :words].flatten(2))
        return Attending(kept[0], kept[1], self.words[rows, :words], self.query[rows])


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
        weight = bounded_exp(query @ key.mT / math.sqrt(query.shape[-1]))  # (B, H, W, 1 + W)
        moved = (weight[..., None] * value[:, :, None]).permute(0, 3, 2, 1, 4)  # (B, 1 + W, W, H, d / H)
        return Attending(moved.flatten(2), weight.permute(0, 3, 2, 1).flatten(2), own, start)


class AttendingReadout(nn.Module):
    """h_i(C) = gelu(a_i + sum over j in C of e^{q_i . k_j} v_j / sum over j in C of e^{q_i . k_j})
    z_{l+1} = f_l(z_l + O_l [sum over i in C of e^{w_i} h_i / S, log S]),   w_i = Q_l z_l . h_i,   S = sum of e^{w_i}
    g(C) = network(z_L)

    for each of H heads, over the words i and j of C. Words meet once, so that pairs count; then a query, which starts
    from the special tokens, reads them L times. The first step needs nothing of C but which of the rows of a matrix to
    add, so a coalition costs far less than a pass.
    """

    def __init__(self, config: "GameHeadConfig") -> None:
        super().__init__()
        dim, self.heads = config.dim, config.heads
        reads = range(config.reads)
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in reads)
        self.queries = nn.ModuleList(nn.Linear(dim, dim) for _ in reads)
        self.outputs = nn.ModuleList(nn.Linear(dim + config.heads, dim) for _ in reads)
        self.forwards = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, config.readout), nn.GELU(), nn.Linear(config.readout, dim))
            for _ in reads
        )
        self.last = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, config.classes))

    @full_precision
    def forward(self, features: Attending, members: Tensor) -> Tensor:
        """(B, K, classes) of coalitions, (B, K, W) numbers 0 or 1."""
        with_context = functional.pad(members, (1, 0), value=1.0)
        return self._read(features, members, with_context @ features.weights, with_context @ features.values)

    @full_precision
    def toggled(self, features: Attending, members: Tensor, words: Tensor, size: int) -> list[Tensor]:
        """(B, k, classes) of coalitions that differ from one, (B, W), by a word each, `size` of them at a time.

        words: their numbers, (K,). The sums over the one coalition are made once; each of the others adds a row of a
        matrix to them, or takes it away.
        """
        with_context = functional.pad(members, (1, 0), value=1.0)[:, None]
        weights, values = with_context @ features.weights, with_context @ features.values
        scores = []
        for part in words.split(size):
            sign = 1 - 2 * members[:, part, None]  # (B, k, 1)
            each = members[:, None].expand(-1, len(part), -1).clone()
            each[:, torch.arange(len(part)), part] += sign[..., 0]
            total = weights + sign * features.weights[:, 1 + part]
            scores.append(self._read(features, each, total, values + sign * features.values[:, 1 + part]))
        return scores

    def _read(self, features: Attending, members: Tensor, total: Tensor, moved: Tensor) -> Tensor:
        """From the sums over the members of each coalition: of weights, (B, K, W H), and of values, (B, K, W d)."""
        words = members.shape[-1]
        total = total.unflatten(-1, (words, self.heads))
        mixed = moved.unflatten(-1, (words, self.heads, -1)) / total[..., None]
        inner = functional.gelu(mixed.flatten(3) + features.words[:, None])  # h, (B, K, W, d)
        inner = inner.unflatten(-1, (self.heads, -1))  # (B, K, W, H, d / H)
        state = features.query[:, None]  # the same for all coalitions until words are read
        scale = 1 / math.sqrt(inner.shape[-1])
        for norm, query, output, feed in zip(self.norms, self.queries, self.outputs, self.forwards, strict=True):
            # Products of many tiny matrices are slow on a CPU, so these are written as sums.
            asked = query(norm(state)).unflatten(-1, (self.heads, -1))[:, :, None]  # (B, K, 1, H, d / H)
            weight = bounded_exp((inner * asked).sum(-1) * scale) * members[..., None]  # (B, K, W, H)
            total = weight.sum(2) + FLOOR
            read = (weight[..., None] * inner).sum(2) / total[..., None]
            state = state + output(torch.cat([read.flatten(2), total.log()], -1))
            state = state + feed(state)
        scores: Tensor = self.last(state)
        return scores


def bounded_exp(score: Tensor) -> Tensor:
    """e^s with s drawn into -RANGE .. RANGE."""
    return (RANGE * torch.tanh(score / RANGE)).exp()


def _context(inner: Tensor, words: Words) -> Tensor:
    """The mean over special tokens, or over all where there are none: (B, n, hidden) -> (B, hidden)."""
    present = words.inputs["attention_mask"].to(inner.device).bool()
    special = (words.owner.to(inner.device) < 0) & present
    chosen = torch.where(special.any(-1, keepdim=True), special, present).to(inner.dtype)
    return (chosen[:, None] @ inner).squeeze(1) / chosen.sum(-1, keepdim=True).clamp_min(1)
