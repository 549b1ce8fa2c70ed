"""The attending form of a game head: a query reads the words of a coalition, which have read each other."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer._base.precision import full_precision
from spinformer.models.attending import FLOOR, Attending, bounded_exp

if TYPE_CHECKING:
    from spinformer.models.game_head import GameHeadConfig

MANY = 32  # coalitions from which it is quicker to read pairs of them


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
        self.last = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, config.scores))

    @full_precision
    def forward(self, features: Attending, members: Tensor) -> Tensor:
        """(B, K, scores) of coalitions, (B, K, W) numbers 0 or 1."""
        return self.scores(self.states(features, members))

    @full_precision
    def states(self, features: Attending, members: Tensor) -> Tensor:
        """z_L, (B, K, d)."""
        if features.short and not (members.is_cuda or torch.is_grad_enabled()) and _in_pairs(members):
            return torch.stack([self.read_pairs(features, row, each) for row, each in enumerate(members)])
        return self.read(features, members, *features.sums(members))

    @full_precision
    def scores(self, states: Tensor) -> Tensor:
        """g, from z_L."""
        scores: Tensor = self.last(states)
        return scores

    def read(self, features: Attending, members: Tensor, total: Tensor, moved: Tensor) -> Tensor:
        """z_L, (B, K, d), from the sums over the members: of weights, (B, K, W, H), and of values, (B, K, W, d)."""
        mixed = moved.unflatten(-1, (self.heads, -1)) / total[..., None]
        inner = functional.gelu(mixed.flatten(3) + features.words[:, None])  # h, (B, K, W, d)
        inner = inner.unflatten(-1, (self.heads, -1))  # (B, K, W, H, d / H)
        state = features.query[:, None]  # the same for all coalitions until words are read
        scale = 1 / math.sqrt(inner.shape[-1])
        for step in range(len(self.norms)):
            # Products of many tiny matrices are slow on a CPU, so these are written as sums.
            asked = self.ask(step, state)[:, :, None]  # (B, K, 1, H, d / H)
            weight = bounded_exp((inner * asked).sum(-1) * scale) * members[..., None]  # (B, K, W, H)
            total = weight.sum(2) + FLOOR
            read = (weight[..., None] * inner).sum(2) / total[..., None]
            state = self.move(step, state, read, total)
        return state

    def read_pairs(self, features: Attending, row: int, members: Tensor) -> Tensor:
        """z_L, (K, d), of coalitions of one text, (K, W), of which no word is in both of the two that follow each other

        As `read`. h_i is needed in one of the two alone, and coalitions come last in every tensor: on a CPU it takes
        half of the time.
        """
        width, dim = features.words.shape[1:]
        sides = members.view(-1, 2, width).permute(1, 2, 0).contiguous()  # (2, W, P)
        with_word = torch.where(sides[0, :, None] > 0, sides[0], sides[1])  # (W, W, P), the coalition with word i first
        with_word = functional.pad(with_word, (0, 0, 1, 0), value=1.0)  # the context is in every coalition
        products = features.products[row].view(1 + width, width, dim).permute(1, 2, 0)
        shape = (width, self.heads, dim // self.heads, -1)
        total = (features.weights[row].transpose(0, 1) @ with_word)[:, :, None]  # (W, H, 1, P)
        mixed = (products.contiguous() @ with_word).view(shape).div_(total).add_(features.words[row].view(shape))
        inner = functional.gelu(mixed)  # h, (W, H, d / H, P)
        room, scale = mixed, 1 / math.sqrt(shape[2])
        state = features.query[row, None]
        for step in range(len(self.norms)):
            asked = scale * self.ask(step, state)  # (1 or K, H, d / H)
            if len(asked) > 1:
                first, second = asked.view(-1, 2, *shape[1:3]).permute(1, 2, 3, 0).contiguous()
                torch.where(sides[0, :, None, None] > 0, first, second, out=room).mul_(inner)
            else:
                torch.mul(inner, asked[0, :, :, None], out=room)
            weight = bounded_exp(room.sum(2))  # (W, H, P)
            totals, reads = [], []
            for side in sides:
                seen = weight * side[:, None]
                totals.append(seen.sum(0) + FLOOR)  # (H, P)
                reads.append(torch.mul(inner, seen[:, :, None], out=room).sum(0) / totals[-1][:, None])
            total = torch.stack(totals, -1).permute(1, 2, 0).flatten(0, 1)  # (K, H)
            state = self.move(step, state, torch.stack(reads, -1).permute(2, 3, 0, 1).flatten(0, 1), total)
        return state

    def ask(self, step: int, state: Tensor) -> Tensor:
        """Q_l z_l, (..., H, d / H), of states (..., d)."""
        asked: Tensor = self.queries[step](self.norms[step](state))
        return asked.unflatten(-1, (self.heads, -1))

    def move(self, step: int, state: Tensor, read: Tensor, total: Tensor) -> Tensor:
        """z_{l+1}, (..., d), from what was read, (..., H, d / H), and S, (..., H)."""
        state = state + self.outputs[step](torch.cat([read.flatten(-2), total.log()], -1))
        moved: Tensor = state + self.forwards[step](state)
        return moved


def _in_pairs(members: Tensor) -> bool:
    """Whether many coalitions, (B, K, W), come in pairs that have no word in common."""
    count = members.shape[1]
    return count >= MANY and count % 2 == 0 and not bool((members[:, ::2] * members[:, 1::2]).any())
