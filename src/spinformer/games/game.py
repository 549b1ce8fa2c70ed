"""Cooperative games: a value for every coalition of players."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.once import once
from spinformer._base.precision import full_precision, widen
from spinformer.games.twins import Ranks, column_ranks, content_ranks

# Memberships of toggled coalitions that are evaluated at once, by the plain form.
TOGGLES = 2**22


class Game(ABC):
    """Delta_i v(C) = v(C + i) - v(C)                                     NGT Eq. 1
    Delta_ij v(C) = v(C + ij) - v(C + i) - v(C + j) + v(C)              NGT Eq. 8

    A game is called with a boolean matrix of coalitions, (K, n) or (B, K, n), and gives their values, (K,) or (B, K).
    `marginals` and `interactions` stand here in their plain form, which evaluates every coalition they need. A game
    with a faster form overrides them, and the tests compare the two.

    players: the number n of columns; mask: (B, n), false for padding, which never plays, or None;
    batched: whether the game was given with a batch dimension; batch: B, 1 for a single game.
    """

    players: int
    batch: int
    batched: bool
    mask: Tensor | None
    dtype: torch.dtype
    device: torch.device

    @abstractmethod
    def evaluate(self, coalitions: Tensor) -> Tensor:
        """Values (B, K) of coalitions (B, K, n), padding already left out."""

    def evaluate_rows(self, rows: Sequence[int], coalitions: Tensor) -> Tensor:
        """As `evaluate`, of these games of the batch alone: (rows, K) of coalitions (rows, K, n)."""
        if len(rows) == self.batch:
            return self.evaluate(coalitions)
        whole = coalitions.new_zeros(self.batch, *coalitions.shape[1:])
        whole[rows] = coalitions
        return self.evaluate(whole)[rows]

    def toggled(self, row: int, coalitions: Tensor, sets: Tensor) -> Tensor:
        """v of C with the players of a set out where they are in, and in where they are out, of one game: (M, P)

        of M coalitions, (M, n) booleans, and P sets of s columns each, (P, s). The plain form; a game that is quicker
        at it overrides it.
        """
        change = torch.zeros(len(sets), self.players, dtype=torch.bool, device=coalitions.device)
        change[torch.arange(len(sets))[:, None], sets.to(change.device)] = True
        parts = coalitions.split(max(1, TOGGLES // max(1, change.numel())))
        whole = ((part[:, None] ^ change).flatten(0, 1)[None].to(self.device) for part in parts)
        return torch.cat([self.evaluate_rows([row], part)[0] for part in whole]).view(len(coalitions), len(sets))

    @full_precision
    def __call__(self, coalitions: Tensor) -> Tensor:
        """v(C) for each coalition: (K, n) or (B, K, n) booleans -> (B, K), or (K,) for a single game."""
        if not isinstance(coalitions, Tensor) or coalitions.dtype != torch.bool:
            kind = coalitions.dtype if isinstance(coalitions, Tensor) else type(coalitions).__name__
            raise TypeError(f"coalitions must be a boolean tensor; got {kind}")
        if coalitions.dim() == 2:
            coalitions = coalitions.expand(self.batch, *coalitions.shape)
        if coalitions.dim() != 3 or coalitions.shape[0] != self.batch or coalitions.shape[2] != self.players:
            raise ValueError(
                f"coalitions must have shape (K, {self.players}) or ({self.batch}, K, {self.players}); "
                f"got {tuple(coalitions.shape)}"
            )
        if self.mask is not None:
            coalitions = coalitions & self.mask[:, None]
        return self.unbatch(self.evaluate(coalitions))

    def counts(self) -> Tensor:
        """The number of players that are not padding, for each game: (B,)."""
        return self._counts

    @once
    def _counts(self) -> Tensor:
        if self.mask is None:
            return torch.full((self.batch,), self.players, device=self.device)
        return self.mask.sum(-1)

    def order(self) -> Tensor:
        """A rank for each player, (B, n), padding last: by their vectors, or by column where there are none."""
        return self._column_ranks if self._content_ranks is None else self._content_ranks.rank

    @property
    def vectors(self) -> Tensor | None:
        """What players are known by, (B, n, d); None: by nothing but their column."""
        return None

    @once
    def _content_ranks(self) -> Ranks | None:
        vectors = self.vectors
        return None if vectors is None else content_ranks(vectors, self.mask)

    @once
    def _column_ranks(self) -> Tensor:
        if self.mask is None:
            return torch.arange(self.players, device=self.device).expand(self.batch, -1)
        return column_ranks(self.mask)

    def twins(self) -> Tensor | None:
        """A number for each player that it shares with the players that are the same, (B, n); None: no two are."""
        return None if self._content_ranks is None else self._content_ranks.twins

    def unbatch(self, result: Tensor) -> Tensor:
        """Drop the batch dimension that a single game was given for the computation."""
        return result if self.batched else result.squeeze(0)

    def marginals(self, coalitions: Tensor) -> tuple[Tensor, Tensor]:
        """For each coalition C and player i: Delta_i v(C - i) and v(C - i), both (B, K, n)."""
        member = torch.eye(self.players, dtype=torch.bool, device=coalitions.device)
        around = coalitions[:, :, None]  # (B, K, 1, n)
        without = self._values(around & ~member)
        return self._values(around | member) - without, without  # NGT Eq. 1

    def interactions(self, coalitions: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        """For i in `rows`, every j: Delta_ij v(C - ij) and v(C - ij), (B, K, rows, n); 0 where i = j."""
        member = torch.eye(self.players, dtype=torch.bool, device=coalitions.device)
        first, second = member[rows, None], member[None]  # (rows, 1, n), (1, n, n)
        context = coalitions[:, :, None, None] & ~first & ~second  # (B, K, rows, n, n)
        without = self._values(context)
        delta = self._values(context | first | second) - self._values(context | first)
        delta = delta - self._values(context | second) + without  # NGT Eq. 8
        return delta.masked_fill(member[rows], 0.0), without

    def expected_marginals(self, probability: Tensor) -> Tensor:
        """E[v(C + i) - v(C - i)], (B, M, n), when player i is in C with probability[..., i], (B, M, n)."""
        raise NotImplementedError(f"the tilted proposal is not known for a {type(self).__name__}")

    def _values(self, coalitions: Tensor) -> Tensor:
        if self.mask is not None:
            coalitions = coalitions & self.mask.view(self.batch, *[1] * (coalitions.dim() - 2), self.players)
        return self.evaluate(coalitions.flatten(1, -2)).view(coalitions.shape[:-1])


class TableGame(Game):
    """v(C) = values[sum over i in C of 2^i]

    values: (2**n,) or (B, 2**n); bit i of the position says whether player i is in. v of the empty coalition
    may be any number: only differences enter the indices.
    """

    def __init__(self, values: Tensor) -> None:
        checks.floating("values", values, (1, 2))
        size = values.shape[-1]
        if size < 2 or size & (size - 1):
            raise ValueError(f"values must hold 2**n numbers for n >= 1 players; got {size}")
        checks.finite("values", values)
        self.batched = values.dim() == 2
        self.table = widen(values if self.batched else values[None])
        self.batch, self.players = self.table.shape[0], size.bit_length() - 1
        self.mask = None
        self.dtype, self.device = self.table.dtype, self.table.device

    def evaluate(self, coalitions: Tensor) -> Tensor:
        """Look each coalition up."""
        bits = 2 ** torch.arange(self.players, device=coalitions.device)
        return self.table.gather(1, (coalitions * bits).sum(-1))

    def expected_marginals(self, probability: Tensor) -> Tensor:
        """Exact: the derivative of the multilinear extension, O(M n 2^n)."""
        columns = []
        for player in range(self.players):
            halves = self.table.view(self.batch, -1, 2, 2**player)
            difference = (halves[:, :, 1] - halves[:, :, 0]).flatten(1)
            others = [other for other in range(self.players) if other != player]
            columns.append(_contract(difference, probability[..., others]))
        return torch.stack(columns, -1)


def _contract(table: Tensor, probability: Tensor) -> Tensor:
    """Mean of `table` (B, 2**m) over independent bits that are 1 with these probabilities (B, M, m): (B, M)."""
    table = table[:, None].expand(-1, probability.shape[1], -1)
    for bit in range(probability.shape[-1]):  # from the lowest bit upwards
        p = probability[..., bit, None]
        table = table.unflatten(-1, (-1, 2))
        table = (1 - p) * table[..., 0] + p * table[..., 1]
    return table.squeeze(-1)
