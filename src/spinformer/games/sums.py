"""Games of sums: a coalition is worth a function of the sum of its members' vectors."""

from collections.abc import Callable

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import widen
from spinformer._base.products import long_product
from spinformer.games.game import Game

# Elements of the sums that are computed at once: on a GPU, and on a CPU, where they should fit into its cache.
BLOCK = (2**28, 2**20)


class SumGame(Game):
    """v(C) = f(sum over i in C of a_i)

    The paper's norm game (NGT Eq. 2) is f(S) = |S|; here f is any function, such as a trained network.
    features: a, (B, n, m) or (n, m); readout: f, from sums (B, K, m) to values (B, K), where row b of the batch is
    game b; mask: (B, n) or (n,), false for padding.

    Around one coalition, every difference comes from the same few values: with C ^ i for C with i moved in or out, and
    s_i = 1 where i is in C and -1 where not,

        Delta_i v(C - i) = s_i (v(C) - v(C ^ i)),
        Delta_ij v(C - ij) = s_i s_j (v(C) - v(C ^ i) - v(C ^ j) + v(C ^ ij)),

    so `marginals` takes 1 + n evaluations per coalition, and `interactions` n^2 / 2 more.
    """

    def __init__(self, features: Tensor, readout: Callable[[Tensor], Tensor], mask: Tensor | None = None) -> None:
        checks.floating("features", features, (2, 3))
        checks.function("readout", readout)
        if 0 in features.shape[-2:]:
            raise ValueError(f"features must hold at least one player and one feature; got {tuple(features.shape)}")
        checks.finite("features", features)
        self.batched = features.dim() == 3
        features = widen(features if self.batched else features[None])
        self.batch, self.players = features.shape[:2]
        if mask is not None and not self.batched and mask.dim() == 1:
            mask = mask[None]
        self.mask = checks.mask("mask", mask, features.shape[:2], features.device)
        self.features = features if self.mask is None else features * self.mask[..., None]
        self.readout = readout
        self.dtype, self.device = features.dtype, features.device

    @property
    def vectors(self) -> Tensor:
        """The players' features."""
        return self.features

    def evaluate(self, coalitions: Tensor) -> Tensor:
        """f of the members' sum, by a matrix product for each block of coalitions."""
        size = max(1, BLOCK[self.device.type == "cpu"] // max(1, self.batch * self.features.shape[2]))
        parts = [self.readout(long_product(block.to(self.dtype), self.features)) for block in coalitions.split(size, 1)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def marginals(self, coalitions: Tensor) -> tuple[Tensor, Tensor]:
        """Delta_i v(C - i) and v(C - i), from v(C) and v(C ^ i)."""
        value, moved = self._around(coalitions)
        inside = self._inside(coalitions)
        value = value[..., None].expand_as(moved)
        sign = 2 * inside.to(self.dtype) - 1
        return sign * (value - moved), torch.where(inside, moved, value)

    def interactions(self, coalitions: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        """Delta_ij v(C - ij) and v(C - ij) for the players in `rows` and all others."""
        value, moved = self._around(coalitions)
        member = torch.eye(self.players, dtype=torch.bool, device=coalitions.device)
        inside = self._inside(coalitions)
        both = self._both(inside, rows)
        first, second = moved[:, :, rows, None], moved[:, :, None]
        value = value[..., None, None].expand_as(both)
        sign = 2 * inside.to(self.dtype) - 1
        delta = sign[:, :, rows, None] * sign[:, :, None] * (value - first - second + both)
        row, column = inside[:, :, rows, None].expand(both.shape), inside[:, :, None].expand(both.shape)
        without = torch.where(row, torch.where(column, both, first), torch.where(column, second, value))
        same = member[rows]
        without = torch.where(same, torch.where(row, first.expand(both.shape), value), without)
        return delta.masked_fill(same, 0.0), without

    def expected_marginals(self, probability: Tensor) -> Tensor:
        """f at the expected sum with i, minus f at the expected sum without it."""
        mean = (probability @ self.features)[:, :, None]  # (B, M, 1, m)
        features, p = self.features[:, None], probability[..., None]
        low, high = mean - p * features, mean + (1 - p) * features  # (B, M, n, m)
        values = self.readout(torch.cat([low.flatten(1, 2), high.flatten(1, 2)], 1))
        low, high = values.unflatten(1, (2, probability.shape[1], self.players)).unbind(1)
        return high - low

    def _around(self, coalitions: Tensor) -> tuple[Tensor, Tensor]:
        """v(C), (B, K), and v(C ^ i) for every i, (B, K, n)."""
        inside = self._inside(coalitions)
        member = torch.eye(self.players, dtype=torch.bool, device=coalitions.device)
        around = torch.cat([inside[:, :, None], inside[:, :, None] ^ member], 2)  # (B, K, 1 + n, n)
        values = self._values(around)
        return values[..., 0], values[..., 1:]

    def _both(self, inside: Tensor, rows: slice) -> Tensor:
        """v(C ^ ij) for i in `rows` and every j != i, (B, K, rows, n), once for each pair; 0 where i = j."""
        player = torch.arange(self.players, device=inside.device)
        selected = player[rows]
        # Of two pairs (i, j) and (j, i) that are both needed, the one with i < j is evaluated.
        twice = (player >= selected[0]) & (player <= selected[-1])
        first, second = ((selected[:, None] < player) | ~twice).nonzero().unbind(-1)
        member = torch.eye(self.players, dtype=torch.bool, device=inside.device)
        value = self._values(inside[:, :, None] ^ (member[selected[first]] ^ member[second]))  # (B, K, pairs)
        value = torch.nn.functional.pad(value, (1, 0))
        position = torch.zeros(len(selected), self.players, dtype=torch.long, device=inside.device)
        position[first, second] = torch.arange(1, len(first) + 1, device=inside.device)
        mirror = position[:, twice]
        position[:, twice] = torch.maximum(mirror, mirror.mT)
        return value[..., position.flatten()].unflatten(-1, position.shape)

    def _inside(self, coalitions: Tensor) -> Tensor:
        return coalitions if self.mask is None else coalitions & self.mask[:, None]
