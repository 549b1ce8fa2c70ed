"""A control variate whose index values are closed: the squared norm, size by size.

The squared norm u(C) = |S_C|^2 is a game whose indices are closed: SV_i = v_i . sum v, BII_ij = 2 v_i . v_j. The norm
game v = F(u) is close to its tangent at the mean of u among the coalitions of the same size s = |C|,

    h(C) = a_s + b_s u(C),   b_s = F'(ubar_s),   a_s = F(ubar_s) - b_s ubar_s,   h(empty) = 0,
    ubar_s = s/n G + s(s-1)/(n(n-1)) P,   G = sum of |v_i|^2,   P = sum over i != j of v_i . v_j,

and every index of h is closed as well, from the distribution of |T| alone, in O(n d) for players and O(n^2 d) for
pairs. What is left to estimate, v - h, is of second order in u - ubar_s. The estimate is unbiased for any a_s and b_s.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer.games.indices import Index, size_distribution
from spinformer.games.norm import NormGame, Pairs, Singles

# ubar_s is at least this part of s/n G: where all vectors cancel, the tangent would be vertical.
FLOOR = 1e-2


class SquaredNormControl:
    """The game h of one batch of norm games: differences around a coalition, and exact indices."""

    def __init__(self, game: NormGame) -> None:
        self.game = game
        self.counts = game.counts()
        self.square_sum = game.squares.sum(-1, keepdim=True, dtype=torch.float64)  # G
        self.pair_sum = game.total.double().square().sum(-1, keepdim=True) - self.square_sum  # P
        n = self.counts[:, None]
        size = torch.arange(game.players + 3, dtype=torch.float64, device=game.device)  # room for two more than n
        one, two = _inclusion(size, n.double())
        spread = one * self.square_sum
        floor = FLOOR * spread
        mean = floor + (spread + two * self.pair_sum - floor).relu()  # the larger of the two, cheaper to differentiate
        value, slope = game.tangent_of(mean)
        outside = (size < 1) | (size > n)
        table = torch.stack([value - slope * mean, slope], 1)  # a and b, (B, 2, sizes)
        self.table = table.masked_fill(outside[:, None], 0.0)
        self.tables: dict[int, Tensor] = {}  # by order
        self.across = game.alignment - game.squares  # here, since blocks of pairs are recomputed in the backward pass

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

    def exact(self, index: Index, rows: slice = slice(None), gram: Tensor | None = None) -> Tensor:
        """The index of h: (B, n), or (B, rows, n) for a pairwise one, in closed form; gram: v_i . v_j, if known."""
        if not index.pairwise:
            return self.exact_players((index,)).squeeze(1)
        (step, *_), (_, bend_one, bend_two), (slope, *_), (first, first_one, _) = self._means(2, (index,))
        factors = (
            step + bend_one * self.square_sum + bend_two * self.pair_sum,
            first - bend_one,
            2 * first_one - 2 * bend_two,
            2 * slope - 4 * first_one + 2 * bend_two,
        )
        square, across = self._square_and_across()
        constant, by_square, by_across, by_gram = (part.to(square.dtype)[..., None] for part in factors)
        single = by_square.squeeze(-1) * square + by_across.squeeze(-1) * across
        if gram is None:
            gram = self.game.values[:, rows] @ self.game.values.mT
        return constant + single[:, rows, None] + single[:, None] + by_gram * gram

    def exact_players(self, indices: Sequence[Index]) -> Tensor:
        """Indices of h that value players, (B, len(indices), n), from the same sums.

        E u(T) = E[one] (G - |v_i|^2) + E[two] (P - 2 across_i), and so on: scalars in float64, then one pass.
        """
        (step, *_), (_, bend_one, bend_two), (slope, slope_one, _) = self._means(1, indices)
        constant = step + bend_one * self.square_sum + bend_two * self.pair_sum
        factors = torch.stack([constant, slope - bend_one, 2 * (slope_one - bend_two)], -1).to(self.game.dtype)
        constant, by_square, by_across = factors[..., None].unbind(2)  # each (B, len(indices), 1)
        square, across = self._square_and_across()
        return constant + by_square * square[:, None] + by_across * across[:, None]

    def _square_and_across(self) -> tuple[Tensor, Tensor]:
        """|v_i|^2 and v_i . sum of the others, each (B, n)."""
        return self.game.squares, self.across

    def _means(self, order: int, indices: Sequence[Index]) -> list[tuple[Tensor, ...]]:
        """For each of `tables_of(order)`: its mean over T, E[table], and E[table one], E[table two], each (B, indices).

        one, two: the probabilities that one and two given others are in T, by its size. One matrix product for all.
        """
        tables = self.tables_of(order)
        others = (self.counts - order).clamp_min(0)
        size = torch.arange(tables.shape[-1], dtype=torch.float64, device=others.device)
        one, two = _inclusion(size, others.double()[:, None])
        weight = torch.stack([size_distribution(index, others, len(size)) for index in indices], 1)
        factors = torch.stack([torch.ones_like(one), one, two], 1)[:, :, None] * weight[:, None]
        means = torch.bmm(tables, factors.flatten(1, 2).mT).unflatten(2, (3, len(indices)))  # (B, tables, 3, indices)
        flat = means.flatten(1, 2).unbind(1)
        return [flat[start : start + 3] for start in range(0, len(flat), 3)]

    def tables_of(self, order: int) -> Tensor:
        """By the size of T: differences of a and of b of this order, b that many sizes on, and for pairs b' one on."""
        if order not in self.tables:
            parts = [self.table.diff(order), self.table[:, 1:, order:]]
            if order == 2:
                parts.append(self.table[:, 1:, 1:].diff())
            self.tables[order] = torch.cat(parts, 1)  # (B, 3 or 4, sizes)
        return self.tables[order]

    def _at(self, order: int, size: Tensor) -> tuple[Tensor, ...]:
        """`tables_of(order)` at these sizes, each of their shape."""
        tables = self.tables_of(order).to(self.game.dtype)
        column = size.long().flatten(1).clamp(0, tables.shape[-1] - 1)
        entries = tables.gather(2, column[:, None].expand(-1, tables.shape[1], -1))
        return entries.unflatten(2, size.shape[1:]).unbind(1)


def _inclusion(size: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities that one given player, and that two, of `count` are among `size` drawn at random.

    Both are 0 where there are too few players, but for the first with `count` 0: there it is `size` itself, which
    multiplies zeros only.
    """
    return size / count.clamp_min(1), size * (size - 1) / (count * (count - 1)).clamp_min(1)
