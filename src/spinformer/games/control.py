"""A control variate with closed index values: the squared norm, taken size by size.

The squared norm u(C) = |S_C|^2 is a game whose indices are closed: SV_i = v_i . sum v, BII_ij = 2 v_i . v_j. The norm
game v = F(u) is close to its tangent at the mean of u among the coalitions of the same size s = |C|,

    h(C) = a_s + b_s u(C),   b_s = F'(ubar_s),   a_s = F(ubar_s) - b_s ubar_s,   h(empty) = 0,
    ubar_s = s/n G + s(s-1)/(n(n-1)) P,   G = sum of |v_i|^2,   P = sum over i != j of v_i . v_j,

and every index of h is closed as well, in O(n d) for players and O(n^2 d) for pairs. What is left to estimate,
v - h, is of second order in u - ubar_s. Whatever a_s and b_s are, the estimate stays unbiased.
"""

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
        own = game.squares.double()
        self.counts = game.counts()
        n = self.counts.double()[:, None]
        self.own_sum = own.sum(-1, keepdim=True)  # G
        self.pair_sum = game.total.double().square().sum(-1, keepdim=True) - self.own_sum  # P
        size = torch.arange(game.players + 3, device=game.device)[None]  # room for two more than n
        s = size.double()
        spread = s / n * self.own_sum
        mean = spread + s * (s - 1) / (n * (n - 1)).clamp_min(1) * self.pair_sum
        mean = mean.maximum(FLOOR * spread)
        slope = game.slope_of(mean)
        inside = (size > 0) & (size <= self.counts[:, None])
        self.slope = torch.where(inside, slope, 0.0)
        self.offset = torch.where(inside, game.value_of(mean) - slope * mean, 0.0)

    def marginals(self, singles: Singles) -> Tensor:
        """Delta_i h(T) = a' + b' u(T) + b_{t+1} (u(T + i) - u(T)): (B, K, n)."""
        step, bend, slope = self._tables(1)
        return (
            self._at(step, singles.size)
            + self._at(bend, singles.size) * singles.square
            + (self._at(slope, singles.size) * singles.gain)
        )

    def interactions(self, pairs: Pairs) -> Tensor:
        """Delta_ij h(T) = a'' + b'' u(T) + b'_{t+1} (gain_i + gain_j) + 2 b_{t+2} v_i . v_j: (B, K, rows, n)."""
        step, bend, slope = self._tables(2)
        first = self.slope.diff()[:, 1:]
        return (
            self._at(step, pairs.size)
            + self._at(bend, pairs.size) * pairs.square
            + self._at(first, pairs.size) * (pairs.gain_row + pairs.gain_column)
            + 2 * self._at(slope, pairs.size) * pairs.gram
        )

    def exact(self, index: str, rows: slice = slice(None)) -> Tensor:
        """The index of h: (B, n), or (B, rows, n) for a pairwise one, in closed form."""
        out = 2 if indices.is_pairwise(index) else 1
        step, bend, slope = self._tables(out)
        width = self.game.players + 1
        step, bend, slope = step[:, :width], bend[:, :width], slope[:, :width]
        others = (self.counts - out).clamp_min(0)
        weight = indices.size_distribution(index, others, width)
        t = torch.arange(width, device=others.device).double()
        m = others.double()[:, None]
        one = t / m.clamp_min(1)  # P(a given other player is in T)
        two = t * (t - 1) / (m * (m - 1)).clamp_min(1)  # P(two given others are in T)

        def mean(*factors: Tensor) -> Tensor:
            product = weight
            for factor in factors:
                product = product * factor
            return product.sum(-1, keepdim=True)

        # E u(T) = E[one] (G - own) + E[two] (P - 2 across), and so on: scalars in float64, then one pass.
        own = self.game.squares
        across = self.game.alignment - own  # v_i . sum of the others
        constant = mean(step) + mean(bend, one) * self.own_sum + mean(bend, two) * self.pair_sum
        if out == 1:
            parts = (constant, mean(slope) - mean(bend, one), 2 * mean(slope, one) - 2 * mean(bend, two))
            constant, by_own, by_across = (part.to(own.dtype) for part in parts)
            return constant + by_own * own + by_across * across
        first = self.slope.diff()[:, 1 : width + 1]
        factors = (
            constant,
            mean(first) - mean(bend, one),
            2 * mean(first, one) - 2 * mean(bend, two),
            2 * mean(slope) - 4 * mean(first, one) + 2 * mean(bend, two),
        )
        constant, by_own, by_across, by_gram = (part.to(own.dtype)[..., None] for part in factors)
        single = by_own.squeeze(-1) * own + by_across.squeeze(-1) * across
        gram = self.game.values[:, rows] @ self.game.values.mT
        return constant + single[:, rows, None] + single[:, None] + by_gram * gram

    def _tables(self, order: int) -> tuple[Tensor, Tensor, Tensor]:
        """Differences of a and of b of this order, and b that many sizes on: each by the size of T."""
        return self.offset.diff(order), self.slope.diff(order), self.slope[:, order:]

    def _at(self, table: Tensor, size: Tensor) -> Tensor:
        flat = table.to(self.game.dtype).gather(1, size.long().flatten(1).clamp(0, table.shape[1] - 1))
        return flat.view(size.shape)
