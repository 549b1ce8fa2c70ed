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
from spinformer.models.attending import FLOOR, RANGE, Attending, bounded_exp
from spinformer.models.attending_readout import AttendingReadout

# Of what word i sees, the share that a word must have for its coming or going not to be taken to first order.
STRONG = 0.05


@full_precision
def toggled_scores(readout: AttendingReadout, features: Attending, members: Tensor, sets: Tensor) -> Tensor:
    """g, (M, P, classes), of coalitions that differ from those of one text, (M, W) numbers 0 or 1, by sets of words.

    features: of one text; sets: P of them, (P, s), numbers of words.
    """
    columns = [features.weights[0].index_select(2, 1 + each) for each in sets.unbind(1)]  # s times (H, W, P)
    return torch.stack([_toggled(readout, features, each, sets, columns) for each in members])


def _toggled(
    readout: AttendingReadout, features: Attending, members: Tensor, sets: Tensor, columns: Sequence[Tensor]
) -> Tensor:
    """(P, classes). columns: weights of the words of the sets, s times (H, W, P)."""
    weights, values = features.weights[0], features.values[0]  # (H, W, 1 + W), (H, 1 + W, d / H)
    own = features.words[0].unflatten(-1, (readout.heads, -1)).transpose(0, 1)  # a, (H, W, d / H)
    total, moved = features.sums_of(0, members)  # S, (H, W)
    mean = moved / total[..., None]  # m, (H, W, d / H)
    sign = 1 - 2 * members[sets]  # (P, s): 1 for words that come
    value = values[:, 1 + sets]  # v, (H, P, s, d / H)
    rows = members.nonzero().squeeze(1)
    changes = [each.index_select(1, rows).mul_(to) for each, to in zip(columns, sign.unbind(1), strict=True)]
    whole = reduce(Tensor.add_, changes[1:], changes[0] + total[:, rows, None])  # S of C', (H, R, P)
    shares = [change.div_(whole) for change in changes]
    states = _States(mean[:, rows], own[:, rows] + mean[:, rows], shares, value)
    came = _came(weights, total, mean, own + mean, sets, sign, value)  # (H, P, s, d / H)
    gone = _gone(members, sets, sign)

    state, scale = features.query, 1 / math.sqrt(own.shape[-1])
    for step in range(len(readout.norms)):
        asked = readout.ask(step, state).transpose(0, 1) * scale  # (H, P, d / H), or (H, 1, d / H) at first
        weight = states.weights(asked, gone)  # (H, R, P)
        new = bounded_exp((asked[:, :, None] * came).sum(-1)) * (sign > 0)  # (H, P, s)
        read, mass = states.sums(weight)
        mass = mass + new.sum(-1) + FLOOR
        read = (read + (new[..., None] * came).sum(2)) / mass[..., None]
        state = readout.move(step, state, read.transpose(0, 1), mass.mT)
    return readout.scores(state)


class _States:
    """h_i(C') = gelu(x_i + d_i) of the words i of C, R of them, for each of P other coalitions.

    mean: m, (H, R, d / H); x: the same; shares: c, s times (H, R, P); value: v, (H, P, s, d / H).

    Numbers of a word and another coalition are many, so they are changed in place where gradients allow it.
    """

    def __init__(self, mean: Tensor, x: Tensor, shares: Sequence[Tensor], value: Tensor) -> None:
        self.inner, self.shares, self.value, slope = functional.gelu(x), shares, value.unbind(2), _gelu_slope(x)
        self.counted = functional.pad(self.inner, (0, 1), value=1.0)  # (H, R, d / H + 1)
        self.slopes = torch.cat([slope, slope * mean], -1)  # (H, R, 2 d / H)
        count, others = shares[0].shape[1:]
        strong = reduce(torch.logical_or, [share.abs() > STRONG for share in shares])
        strong = strong.flatten().nonzero().squeeze(1)  # numbers of places in (H, R, P)
        self.place, order = (strong // max(1, count * others) * others + strong % others).sort()  # in (H, P)
        self.strong = strong[order]  # side by side where the other coalition is the same
        self.first = torch.searchsorted(self.place, torch.arange(len(x) * others, device=x.device))
        row = self.strong // others  # in (H, R)
        each = torch.cat([mean, x, self.inner, slope], -1).flatten(0, 1)  # of words
        middle, x, inner, slope = each.index_select(0, row).chunk(4, -1)  # (N, d / H) each
        came = value.flatten(0, 1).flatten(1).index_select(0, self.place).chunk(len(shares), -1)
        moved = sum(share.take(self.strong)[:, None] * (v - middle) for share, v in zip(shares, came, strict=True))
        self.rest = functional.gelu(x + moved) - inner - slope * moved  # (N, d / H)

    def weights(self, asked: Tensor, gone: tuple[Tensor, Tensor]) -> Tensor:
        """`bounded_exp` of asked . h, (H, R, P), of (H, P or 1, d / H); gone: places in (R, P), of weight 0."""
        each = asked.expand_as(self.value[0]).flatten(0, 1).index_select(0, self.place)  # (N, d / H)
        column = (asked / RANGE).mT.contiguous()  # products with columns in a row are much faster
        products = (self.inner @ column).expand_as(self.shares[0]).contiguous()
        for share, value in zip(self.shares, self.value, strict=True):
            right = torch.cat([column * value.mT, (-column).expand_as(value.mT)], 1)  # (H, 2 d / H, P)
            products.addcmul_(self.slopes @ right, share)
        products.view(-1).index_add_(0, self.strong, (each * self.rest).sum(-1) / RANGE)
        row, place = gone
        if torch.is_grad_enabled():
            stays = torch.ones_like(products[0]).index_put(gone, products.new_zeros(()))
            return (products.tanh_() * RANGE).exp_() * stays
        weights = products.tanh_().mul_(RANGE).exp_()
        weights[:, row, place] = 0
        return weights

    def sums(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The sum over i of weight_i h_i, (H, P, d / H), and of weight_i, (H, P), of (H, R, P)."""
        found, mass = (weight.mT @ self.counted).split([self.inner.shape[-1], 1], -1)
        for share, value in zip(self.shares, self.value, strict=True):
            first, second = ((weight * share).mT @ self.slopes).chunk(2, -1)
            found = found + value * first - second
        rest = functional.embedding_bag(
            torch.arange(len(self.rest), device=weight.device),
            self.rest,
            self.first,
            mode="sum",
            per_sample_weights=weight.take(self.strong),
        )
        return found + rest.view_as(found), mass.squeeze(-1)


def _came(weights: Tensor, total: Tensor, mean: Tensor, x: Tensor, sets: Tensor, sign: Tensor, value: Tensor) -> Tensor:
    """h of the words of each set as they are in the other coalition, (H, P, s, d / H), whether they come or go."""
    change = weights[:, sets[:, :, None], 1 + sets[:, None]] * sign[:, None]  # (H, P, s, s)
    share = change / (total[:, sets] + change.sum(-1))[..., None]
    moved = (share[..., None] * (value[:, :, None] - mean[:, sets][:, :, :, None])).sum(3)
    return functional.gelu(x[:, sets] + moved)


def _gone(members: Tensor, sets: Tensor, sign: Tensor) -> tuple[Tensor, Tensor]:
    """The words of C that go, and the other coalitions without them: numbers of rows and of columns of (R, P)."""
    place, which = (sign < 0).nonzero(as_tuple=True)
    return (members.cumsum(0).long() - 1)[sets[place, which]], place


def _gelu_slope(x: Tensor) -> Tensor:
    """gelu'(x)"""
    return torch.special.ndtr(x) + x * (x.square() * -0.5).exp() / math.sqrt(2 * math.pi)
