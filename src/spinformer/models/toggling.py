"""What the attending readout says of coalitions that differ from one by a few words, without reading each anew.

    h_i(C') = gelu(x_i + d_i),   x_i = a_i + m_i,   d_i = sum over the words t that came or went of c_it (v_t - m_i),
    c_it = +- e^{q_i . k_t} / S_i(C')

m_i: the mean that word i of C sees; S_i: the sum of weights behind it. d_i is exact. A word that comes or goes changes
what most others see by very little, and where c is small, gelu(x + d) = gelu(x) + gelu'(x) d: then the sums over i of a
read are products of matrices. Where c is larger than STRONG, and for the words that come, gelu is taken as it is.
"""

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base.precision import full_precision
from spinformer.models.attending import FLOOR, RANGE, Attending, AttendingReadout, bounded_exp

# Of what word i sees, the share that a word must have for its coming or going not to be taken to first order.
STRONG = 0.05


@full_precision
def toggled_scores(readout: AttendingReadout, features: Attending, members: Tensor, sets: Tensor) -> Tensor:
    """g, (M, P, classes), of coalitions that differ from those of one text, (M, W) numbers 0 or 1, by sets of words.

    features: of one text; sets: P of them, (P, s), numbers of words.
    """
    return torch.stack([_toggled(readout, features, each, sets) for each in members])


def _toggled(readout: AttendingReadout, features: Attending, members: Tensor, sets: Tensor) -> Tensor:
    """(P, classes)"""
    weights, values = features.weights[0], features.values[0]  # (H, W, 1 + W), (H, 1 + W, d / H)
    own = features.words[0].unflatten(-1, (readout.heads, -1)).transpose(0, 1)  # a, (H, W, d / H)
    with_context = functional.pad(members, (1, 0), value=1.0)
    total = weights @ with_context  # S, (H, W)
    mean = (weights * with_context) @ values / total[..., None]  # m, (H, W, d / H)
    sign = 1 - 2 * members[sets]  # (P, s): 1 for words that come
    value = values[:, 1 + sets]  # v, (H, P, s, d / H)
    rows = members.nonzero().squeeze(1)
    inside, columns = weights[:, rows], zip(sets.unbind(1), sign.unbind(1), strict=True)
    changes = [inside.index_select(2, 1 + each) * direction for each, direction in columns]  # s times (H, R, P)
    whole = sum(changes, total[:, rows, None])
    states = _States(mean[:, rows], own[:, rows] + mean[:, rows], [change / whole for change in changes], value)
    came = _came(weights, total, mean, own + mean, sets, sign, value)  # (H, P, s, d / H)
    stays = _stays(members, sets, sign)

    state, scale = features.query, 1 / math.sqrt(own.shape[-1])
    for step in range(len(readout.norms)):
        asked = readout.ask(step, state).transpose(0, 1) * scale  # (H, P, d / H), or (H, 1, d / H) at first
        asked = asked.expand(-1, len(sets), -1)
        weight = _bounded_exp(states.products(asked)) * stays  # (H, R, P)
        new = bounded_exp((asked[:, :, None] * came).sum(-1)) * (sign > 0)  # (H, P, s)
        mass = weight.sum(1) + new.sum(-1) + FLOOR
        read = (states.sums(weight) + (new[..., None] * came).sum(2)) / mass[..., None]
        state = readout.move(step, state, read.transpose(0, 1), mass.mT)
    scores: Tensor = readout.last(state)
    return scores


class _States:
    """h_i(C') = gelu(x_i + d_i) of the words i of C, R of them, for each of P other coalitions.

    mean: m, (H, R, d / H); x: the same; shares: c, s times (H, R, P); value: v, (H, P, s, d / H).
    """

    def __init__(self, mean: Tensor, x: Tensor, shares: Sequence[Tensor], value: Tensor) -> None:
        self.inner, self.shares, self.value = functional.gelu(x), shares, value.unbind(2)
        slope = _gelu_slope(x)
        self.slopes = torch.cat([slope, slope * mean], -1)  # (H, R, 2 d / H)
        self.strong = reduce(torch.logical_or, [share.abs() > STRONG for share in shares]).nonzero(as_tuple=True)
        head, row, place = self.strong
        parts = zip(shares, self.value, strict=True)
        moved = sum(share[self.strong][:, None] * (each[head, place] - mean[head, row]) for share, each in parts)
        exact = functional.gelu(x[head, row] + moved)
        self.rest = exact - self.inner[head, row] - slope[head, row] * moved  # (N, d / H)

    def products(self, asked: Tensor) -> Tensor:
        """asked . h, (H, R, P), of (H, P, d / H)."""
        found = self.inner @ asked.mT
        for share, value in zip(self.shares, self.value, strict=True):
            found = found + share * (self.slopes @ torch.cat([asked * value, -asked], -1).mT)
        head, _, place = self.strong
        return found.index_put(self.strong, (asked[head, place] * self.rest).sum(-1), accumulate=True)

    def sums(self, weight: Tensor) -> Tensor:
        """The sum over i of weight_i h_i, (H, P, d / H), of (H, R, P)."""
        found = weight.mT @ self.inner
        for share, value in zip(self.shares, self.value, strict=True):
            first, second = ((weight * share).mT @ self.slopes).chunk(2, -1)
            found = found + value * first - second
        head, _, place = self.strong
        rest = weight[self.strong][:, None] * self.rest
        return found.flatten(0, 1).index_add(0, head * weight.shape[-1] + place, rest).view_as(found)


def _came(weights: Tensor, total: Tensor, mean: Tensor, x: Tensor, sets: Tensor, sign: Tensor, value: Tensor) -> Tensor:
    """h of the words of each set as they are in the other coalition, (H, P, s, d / H), whether they come or go."""
    change = weights[:, sets[:, :, None], 1 + sets[:, None]] * sign[:, None]  # (H, P, s, s)
    share = change / (total[:, sets] + change.sum(-1))[..., None]
    moved = (share[..., None] * (value[:, :, None] - mean[:, sets][:, :, :, None])).sum(3)
    return functional.gelu(x[:, sets] + moved)


def _stays(members: Tensor, sets: Tensor, sign: Tensor) -> Tensor:
    """(R, P): 0 for the words of C that go, 1 for the others."""
    place, which = (sign < 0).nonzero(as_tuple=True)
    row = (members.cumsum(0).long() - 1)[sets[place, which]]
    stays = members.new_ones(int(members.sum()), len(sets))
    stays[row, place] = 0
    return stays


def _bounded_exp(score: Tensor) -> Tensor:
    """`bounded_exp`, by a function that takes a third of the time of tanh: tanh(x) = 2 sigmoid(2 x) - 1."""
    return (2 * RANGE * torch.sigmoid(score * (2 / RANGE)) - RANGE).exp()


def _gelu_slope(x: Tensor) -> Tensor:
    """gelu'(x)"""
    return torch.special.ndtr(x) + x * (x.square() * -0.5).exp() / math.sqrt(2 * math.pi)
