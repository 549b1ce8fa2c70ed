"""A control variate with closed index values: the squared norm, taken size by size.

The squared norm u(C) = |S_C|^2 is a game whose indices are closed: SV_i = v_i . sum v, BII_ij = 2 v_i . v_j. The norm
game v = F(u) is close to its tangent at the mean of u among the coalitions of the same size s = |C|,

    h(C) = a_s + b_s u(C),   b_s = F'(ubar_s),   a_s = F(ubar_s) - b_s ubar_s,   h(empty) = 0,
    ubar_s = s/n G + s(s-1)/(n(n-1)) P,   G = sum of |v_i|^2,   P = sum over i != j of v_i . v_j,

and every index of h is closed as well, in O(n d) for players and O(n^2 d) for pairs. What is left to estimate,
v - h, is of second order in u - ubar_s. Whatever a_s and b_s are, the estimate stays unbiased.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer.games import indices
from spinformer.games.norm import NormGame, Pairs, Singles

# ubar_s is held above this part of s/n G: where all vectors cancel, the tangent would be vertical.
FLOOR = 1e-2


class SquaredNormControl:
    """The game h of one batch of norm games: differences around a coalition, and exact indices."""

    def __init__(self, game: NormGame) -> None:
        self.game = game
        self.counts = game.counts()
        self.own_sum = game.squares.sum(-1, keepdim=True, dtype=torch.float64)  # G
        self.pair_sum = game.total.double().square().sum(-1, keepdim=True) - self.own_sum  # P
        n = self.counts[:, None]
        size = torch.arange(game.players + 3, dtype=torch.float64, device=game.device)  # room for two more than n
        one, two = _chances(size, n.double())
        spread = one * self.own_sum
        least = FLOOR * spread
        mean = least + (spread + two * self.pair_sum - least).relu()  # the larger of the two, cheaper to differentiate
        value, slope = game.tangent_of(mean)
        outside = (size < 1) | (size > n)
        table = torch.stack([value - slope * mean, slope], 1)  # a and b, (B, 2, sizes)
        self.table = table.masked_fill(outside[:, None], 0.0)
        self.tables: dict[int, Tensor] = {}

    @property
    def offset(self) -> Tensor:
        """a_s, (B, sizes)."""
        return self.table[:, 0]

    @property
    def slope(self) -> Tensor:
        """b_s, (B, sizes)."""
        return self.table[:, 1]

    def marginals(self, singles: Singles) -> Tensor:
        """Delta_i h(T) = a' + b' u(T) + b_{t+1} (u(T + i) - u(T)): (B, K, n)."""
        step, bend, slope = self._at(1, singles.size)
        return step + bend * singles.square + slope * singles.gain

    def interactions(self, pairs: Pairs) -> Tensor:
        """Delta_ij h(T) = a'' + b'' u(T) + b'_{t+1} (gain_i + gain_j) + 2 b_{t+2} v_i . v_j: (B, K, rows, n)."""
        step, bend, slope, first = self._at(2, pairs.size)
        return step + bend * pairs.square + first * (pairs.gain_row + pairs.gain_column) + 2 * slope * pairs.gram

    def exact(self, index: str, rows: slice = slice(None)) -> Tensor:
        """The index of h: (B, n), or (B, rows, n) for a pairwise one, in closed form."""
        if not indices.is_pairwise(index):
            return self.exact_players((index,)).squeeze(1)
        (step, *_), (_, bend_one, bend_two), (slope, *_), (first, first_one, _) = self._means(2, (index,))
        factors = (
            step + bend_one * self.own_sum + bend_two * self.pair_sum,
            first - bend_one,
            2 * first_one - 2 * bend_two,
            2 * slope - 4 * first_one + 2 * bend_two,
        )
        own, across = self._own_and_across()
        constant, by_own, by_across, by_gram = (part.to(own.dtype)[..., None] for part in factors)
        single = by_own.squeeze(-1) * own + by_across.squeeze(-1) * across
        gram = self.game.values[:, rows] @ self.game.values.mT
        return constant + single[:, rows, None] + single[:, None] + by_gram * gram

    def exact_players(self, names: Sequence[str]) -> Tensor:
        """Indices of h that value players, (B, len(names), n), from the same sums.

        E u(T) = E[one] (G - own) + E[two] (P - 2 across), and so on: scalars in float64, then one pass.
        """
        (step, *_), (_, bend_one, bend_two), (slope, slope_one, _) = self._means(1, names)
        constant = step + bend_one * self.own_sum + bend_two * self.pair_sum
        factors = torch.stack([constant, slope - bend_one, 2 * (slope_one - bend_two)], -1).to(self.game.dtype)
        constant, by_own, by_across = factors[..., None].unbind(2)  # each (B, len(names), 1)
        own, across = self._own_and_across()
        return constant + by_own * own[:, None] + by_across * across[:, None]

    def _own_and_across(self) -> tuple[Tensor, Tensor]:
        """|v_i|^2 and v_i . sum of the others, each (B, n)."""
        return self.game.squares, self.game.alignment - self.game.squares

    def _means(self, order: int, names: Sequence[str]) -> list[tuple[Tensor, ...]]:
        """For each of `_tables(order)`: its mean over T, E[table], and E[table one], E[table two], each (B, names).

        one, two: the chances that one and two given others are in T, by the size of T. One matrix product for all.
        """
        tables = self._tables(order)
        others = (self.counts - order).clamp_min(0)
        size = torch.arange(tables.shape[-1], dtype=torch.float64, device=others.device)
        one, two = _chances(size, others.double()[:, None])
        weight = torch.stack([indices.size_distribution(name, others, len(size)) for name in names], 1)
        factors = torch.stack([torch.ones_like(one), one, two], 1)[:, :, None] * weight[:, None]
        means = torch.bmm(tables, factors.flatten(1, 2).mT).unflatten(2, (3, len(names)))  # (B, tables, 3, names)
        flat = means.flatten(1, 2).unbind(1)
        return [flat[start : start + 3] for start in range(0, len(flat), 3)]

    def _tables(self, order: int) -> Tensor:
        """By the size of T: differences of a and of b of this order, b that many sizes on, and for pairs b' one on."""
        if order not in self.tables:
            parts = [self.table.diff(order), self.table[:, 1:, order:]]
            if order == 2:
                parts.append(self.table[:, 1:, 1:].diff())
            self.tables[order] = torch.cat(parts, 1)  # (B, 3 or 4, sizes)
        return self.tables[order]

    def _at(self, order: int, size: Tensor) -> tuple[Tensor, ...]:
        """`_tables(order)` at these sizes, each of their shape."""
        tables = self._tables(order).to(self.game.dtype)
        place = size.long().flatten(1).clamp(0, tables.shape[-1] - 1)
        found = tables.gather(2, place[:, None].expand(-1, tables.shape[1], -1))
        return found.unflatten(2, size.shape[1:]).unbind(1)


def _chances(size: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """That one given player, and that two, of `count` are among `size` drawn at random; 0 where there are not so many.

    For one player of none the first is `size` itself, which multiplies nothing but zeros.
    """
    return size / count.clamp_min(1), size * (size - 1) / (count * (count - 1)).clamp_min(1)
