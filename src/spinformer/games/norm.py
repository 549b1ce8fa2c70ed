"""The semantic game of the paper: a coalition is worth the length of its members' sum."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.once import once
from spinformer._base.precision import power_of_two, safe_divide, safe_sqrt, widen
from spinformer._base.products import long_product
from spinformer.games.game import Game
from spinformer.kernels.narrow import NarrowVectors, widened
from spinformer.kernels.support import usable
from spinformer.kernels.vectors import ready_vectors

ACTIVATIONS = ("identity", "relu", "tanh", "log1p")


class Sums(NamedTuple):
    """Of coalitions C, with S the sum of their members' vectors."""

    inside: Tensor  # membership as numbers, (B, K, n)
    square: Tensor  # |S|^2, (B, K, 1)
    products: Tensor  # S . v_i, (B, K, n)


class Singles(NamedTuple):
    """Around coalition C and player i, T = C - i; each (B, K, n)."""

    size: Tensor  # |T|
    square: Tensor  # |S_T|^2, the squared norm without i
    gain: Tensor  # |S_T + v_i|^2 - |S_T|^2


class Pairs(NamedTuple):
    """Around coalition C and players i, j, T = C - ij; each (B, K, rows, n) but `gram` (B, 1, rows, n)."""

    size: Tensor
    square: Tensor
    gain_row: Tensor  # |S_T + v_i|^2 - |S_T|^2
    gain_column: Tensor  # |S_T + v_j|^2 - |S_T|^2
    gram: Tensor  # v_i . v_j


class NormGame(Game):
    """v(C) = f(scale * |sum of v_i over i in C|),   v(empty) = 0            NGT Eq. 2

    values: (B, n, d) or (n, d), the paper's W_v x_i; mask: (B, n) or (n,), false for padding; activation: the
    paper's f; scale: a number or (B,); trusted: whether the contents of all three have been checked before. Values that
    are huge or tiny are kept divided by a power of two, and the scale times it, so that no square overflows.
    by_column: players take random numbers by their column, and not by their vectors: cheaper, and an estimate then
    depends on the players' order.

    All differences are formed without cancellation: with T = C - i, u the squared norm and r its root,
    r(T + i) - r(T) = (u(T + i) - u(T)) / (r(T + i) + r(T)).

    Cost of `marginals` for K coalitions: O(B K n d) time, O(B K (n + d)) memory; of `interactions`: O(B K rows n).
    """

    def __init__(
        self,
        values: Tensor,
        mask: Tensor | None = None,
        activation: str = "identity",
        scale: float | Tensor = 1.0,
        trusted: bool = False,
        by_column: bool = False,
    ) -> None:
        checks.floating("values", values, (2, 3))
        checks.choice("activation", activation, ACTIVATIONS)
        if 0 in values.shape[-2:]:
            raise ValueError(
                f"values must hold at least one player of at least one dimension; got {tuple(values.shape)}"
            )
        checks.each("scale", scale, values.shape[0] if values.dim() == 3 else 1)
        if not trusted:
            checks.positive("scale", scale)
            checks.finite("values", values)
        self.batched, self.by_column = values.dim() == 3, by_column
        values = widen(values if self.batched else values[None])
        self.batch, self.players = values.shape[:2]
        self.dtype, self.device = values.dtype, values.device
        if mask is not None and not self.batched and mask.dim() == 1:
            mask = mask[None]
        self.mask = mask if trusted else checks.mask("mask", mask, values.shape[:2], values.device)
        unit = power_of_two(values.detach().abs().amax((1, 2)))  # (B,)
        present: Tensor | float = 1.0 if self.mask is None else self.mask[..., None]
        self.values = values * (present / unit[:, None, None])
        self.activation = activation
        scale = scale.to(self.values) if isinstance(scale, Tensor) else self.values.new_full((), scale)
        self.scale = scale.expand(self.batch) * unit
        self.squares = self.values.square().sum(-1)  # (B, n): |v_i|^2
        self.narrow: Tensor | None = None  # the values, where 16 bits are all that there is of them
        self.given = self.values  # what operators take: the values, or what stands for them beside the narrow ones

    @classmethod
    def of_shares(
        cls,
        values: Tensor,
        mask: Tensor | None,
        activation: str,
        by_column: bool,
    ) -> "NormGame":
        """The game with scale 1 / sum of all |v_i|: no coalition's sum is longer than 1. values: (B, n, d), checked."""
        if not usable(values):
            game = cls(values, mask, activation, trusted=True, by_column=by_column)
            longest = safe_sqrt(game.squares).sum(-1)
            game.scale = longest.masked_fill(longest <= 0, 1e30).reciprocal()
            return game
        game = object.__new__(cls)
        game.batched, game.by_column, game.activation, game.mask = True, by_column, activation, mask
        (game.batch, game.players), game.dtype, game.device = values.shape[:2], values.dtype, values.device
        game.values, game.squares, game.scale, _ = ready_vectors(values, mask)
        game.narrow, game.given = None, game.values
        return game

    @classmethod
    def of_narrow(cls, known: NarrowVectors, mask: Tensor | None, activation: str, by_column: bool) -> "NormGame":
        """As `of_shares`, of vectors of 16 bits that are made wider only where something asks for them."""
        game = object.__new__(cls)
        game.batched, game.by_column, game.activation, game.mask = True, by_column, activation, mask
        (game.batch, game.players), game.dtype, game.device = known.squares.shape, torch.float32, known.given.device
        game.given, game.narrow, game.squares, game.scale = known.given, known.vectors, known.squares, known.scale
        return game

    @once
    def values(self) -> Tensor:
        """v_i, (B, n, d)."""
        assert self.narrow is not None
        return widened(self.given, self.narrow)

    @once
    def total(self) -> Tensor:
        """sum of all, (B, d)."""
        return self.values.sum(1)

    @once
    def grand(self) -> Tensor:
        """|sum of all|^2, (B,)."""
        return self.total.square().sum(-1)

    @once
    def alignment(self) -> Tensor:
        """v_i . sum of all, (B, n)."""
        return torch.bmm(self.values, self.total[..., None]).squeeze(-1)

    def evaluate(self, coalitions: Tensor) -> Tensor:
        """f(scale |S_C|) by one matrix product."""
        sums = long_product(coalitions.to(self.dtype), self.values)
        return self.value_of(sums.square().sum(-1))  # NGT Eq. 2

    @property
    def vectors(self) -> Tensor | None:
        """The players' own, as they enter the sums; None where they are known by their column."""
        return None if self.by_column else self.values

    def value_of(self, square: Tensor) -> Tensor:
        """v as a function of the squared norm; `square` is (B, ...)."""
        return self._function()(self._scaled(safe_sqrt(square)))

    def tangent_of(self, square: Tensor) -> tuple[Tensor, Tensor]:
        """v as a function of the squared norm, and its slope dv / d(squared norm), 0 at 0."""
        root = safe_sqrt(square)
        x = self._scaled(root)
        slope = safe_divide(self._scaled(torch.ones_like(root)), 2 * root)
        if self.activation == "tanh":
            slope = slope * (1 - x.tanh().square())
        elif self.activation == "log1p":
            slope = slope / (1 + x)
        return self._function()(x), slope

    def sums(self, coalitions: Tensor) -> Sums:
        """The two matrix products from which all differences around these coalitions follow."""
        inside = coalitions.to(self.dtype)
        sums = long_product(inside, self.values)  # (B, K, d)
        return Sums(inside, sums.square().sum(-1, keepdim=True), torch.bmm(sums, self.values.mT))

    def singles(self, coalitions: Tensor) -> Singles:
        """What the marginals of all players are computed from."""
        return self.singles_of(self.sums(coalitions))

    def singles_of(self, sums: Sums) -> Singles:
        """`singles` from sums: S_T . v_i = S . v_i - c_i |v_i|^2, and |S_T|^2 = |S|^2 - c_i gain_i."""
        inside, squares = sums.inside, self.squares[:, None]
        gain = squares + 2 * (sums.products - inside * squares)
        size = inside.sum(-1, keepdim=True) - inside
        square = (sums.square - inside * gain) * (size > 0)
        return Singles(size, square.relu(), gain)

    def pairs(self, coalitions: Tensor, rows: slice) -> Pairs:
        """What the interactions are computed from, for the players in `rows` and all others."""
        inside, total, products = self.sums(coalitions)
        gram = (self.values[:, rows] @ self.values.mT)[:, None]  # (B, 1, rows, n)
        squares = self.squares[:, None]
        row = (slice(None), slice(None), rows, None)
        column = (slice(None), slice(None), None)
        # S_T . v_i = S . v_i - c_i |v_i|^2 - c_j v_i . v_j
        without_self = products - inside * squares
        along_row = without_self[row] - inside[column] * gram
        along_column = without_self[column] - inside[row] * gram
        single = inside * (2 * products - squares)
        square = total[..., None] - single[row] - single[column] + 2 * (inside[row] * inside[column]) * gram
        size = inside.sum(-1)[..., None, None] - inside[row] - inside[column]
        square = torch.where(size > 0, square, 0.0).clamp_min(0)
        return Pairs(size, square, 2 * along_row + squares[row], 2 * along_column + squares[column], gram)

    def marginals(self, coalitions: Tensor) -> tuple[Tensor, Tensor]:
        """Delta_i v(C - i) and v(C - i) for all i from one matrix product."""
        return self.marginals_of(self.singles(coalitions))

    def marginals_of(self, singles: Singles) -> tuple[Tensor, Tensor]:
        """`marginals` from `singles`."""
        low, high = safe_sqrt(singles.square), safe_sqrt(singles.square + singles.gain)
        step = self._scaled(safe_divide(singles.gain, low + high))
        low, high = self._scaled(low), self._scaled(high)
        if self.activation == "tanh":
            return high.tanh() - low.tanh(), low.tanh()
        if self.activation == "log1p":
            return torch.log1p(step / (1 + low)), low.log1p()
        return step, low

    def interactions(self, coalitions: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        """Delta_ij v(C - ij) and v(C - ij) for the players in `rows` and all others."""
        delta, without = self.interactions_of(self.pairs(coalitions, rows))
        same = torch.eye(self.players, dtype=torch.bool, device=delta.device)[rows]
        return delta.masked_fill(same, 0.0), without

    def interactions_of(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """`interactions` from `pairs`; entries on the diagonal mean nothing."""
        _, square, gain_row, gain_column, gram = pairs
        none = safe_sqrt(square)
        row, column = safe_sqrt(square + gain_row), safe_sqrt(square + gain_column)
        both = safe_sqrt(square + gain_row + gain_column + 2 * gram)
        if self.activation in ("tanh", "log1p"):
            f = self._function()
            none, row, column, both = (f(self._scaled(r)) for r in (none, row, column, both))
            return (both - column) - (row - none), none
        # (both - column) - (row - none) with every difference of roots written as a quotient
        turn = safe_divide(gain_column + 2 * gram, both + row) + safe_divide(gain_column, column + none)
        delta = safe_divide(2 * gram - safe_divide(gain_row * turn, row + none), both + column)
        return self._scaled(delta), self._scaled(none)

    def expected_marginals(self, probability: Tensor) -> Tensor:
        """f of the root of the expected squared norm with i, minus the same without i: O(M n min(n, d))."""
        squares, p = self.squares[:, None], probability
        if self.players < self.values.shape[2] and not torch.is_grad_enabled():
            along = p @ self._gram  # (B, M, n)
            whole = (p * along).sum(-1, keepdim=True)
        else:
            mean = p @ self.values  # (B, M, d)
            along = mean @ self.values.mT
            whole = mean.square().sum(-1, keepdim=True)
        scaled = p * squares
        spread = (scaled - p * scaled).sum(-1, keepdim=True)
        gain = 2 * (along - scaled) + squares
        square = (whole + spread - p * gain).clamp_min(0)
        return self.marginals_of(Singles(square, square, gain))[0]

    @once
    def _gram(self) -> Tensor:
        """v_i . v_j, (B, n, n), without a graph: for iterations that meet it again and again."""
        return self.values.detach() @ self.values.detach().mT

    def _function(self) -> Callable[[Tensor], Tensor]:
        functions: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "log1p": torch.log1p}
        return functions.get(self.activation, lambda x: x)

    def _scaled(self, x: Tensor) -> Tensor:
        return x * self.scale.view(-1, *[1] * (x.dim() - 1))
