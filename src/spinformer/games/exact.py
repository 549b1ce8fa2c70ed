"""Exact index values by enumeration of every coalition: the oracle that every estimator is tested against."""

import torch
from torch import Tensor

from spinformer.games import indices
from spinformer.games.game import Game
from spinformer.games.indices import Index, Weighting
from spinformer.precision import full_precision

MAX_PLAYERS = 20
CHUNK = 2**12


@full_precision
def exact_values(
    game: Game, index: Index, weighting: Weighting = "uniform", temperature: float | Tensor = 1.0
) -> Tensor:
    """sum over T of P(T) Delta_i v(T)    or    sum over T of P(T) Delta_ij v(T)

    with P as in `spinformer.games.indices`: Eqs. 4, 5, 9 for the uniform weighting, the limit of Eqs. 33, 35, 36
    for the Gibbs weighting. "SV", "BV" -> (B, n); "SII", "BII" -> (B, n, n) with zero diagonal; without the batch
    dimension for a single game. Padding has value 0. Sums run in float64; O(n 2^n) or O(n^2 2^n) time and
    O(B 2^n) memory. Columns that are padding in every row do not count towards the limit of 20 players.
    """
    indices.check(index, weighting, temperature)
    columns = _playing(game)
    if len(columns) > MAX_PLAYERS:
        raise ValueError(
            f"exact values enumerate 2**n coalitions and take at most {MAX_PLAYERS} players; got {len(columns)}; "
            "use estimate_values"
        )
    temperature = torch.as_tensor(temperature, dtype=torch.float64, device=game.device).expand(game.batch)
    table = coalition_table(game, columns)
    result = _Table(table, len(columns), index, weighting, temperature).result()
    whole = torch.zeros(game.batch, *[game.players] * (result.dim() - 1), dtype=game.dtype, device=game.device)
    if indices.is_pairwise(index):
        whole[:, columns[:, None], columns] = result.to(game.dtype)
        if game.mask is not None:
            whole = whole * game.mask[:, None] * game.mask[:, :, None]
    else:
        whole[:, columns] = result.to(game.dtype)
        if game.mask is not None:
            whole = whole * game.mask
    return game.unbatch(whole)


def coalition_table(game: Game, columns: Tensor) -> Tensor:
    """v of all 2**m coalitions of the players in `columns`: (B, 2**m), float64."""
    size = 2 ** len(columns)
    bits = torch.arange(len(columns), device=game.device)
    parts = []
    for start in range(0, size, CHUNK):
        position = torch.arange(start, min(start + CHUNK, size), device=game.device)
        coalitions = torch.zeros(len(position), game.players, dtype=torch.bool, device=game.device)
        coalitions[:, columns] = (position[:, None] >> bits & 1).bool()
        values = game(coalitions)
        parts.append((values if game.batched else values[None]).double())
    return torch.cat(parts, 1)


def _playing(game: Game) -> Tensor:
    if game.mask is None:
        return torch.arange(game.players, device=game.device)
    return game.mask.any(0).nonzero().flatten()


class _Table:
    """The table of one batch of games, seen along one bit or two."""

    def __init__(self, table: Tensor, players: int, index: Index, weighting: Weighting, temperature: Tensor) -> None:
        self.table, self.players, self.index, self.weighting = table, players, index, weighting
        self.temperature = temperature[:, None]
        position = torch.arange(2**players, device=table.device)
        self.size = sum((position >> bit & 1 for bit in range(players)), torch.zeros_like(position))

    def result(self) -> Tensor:
        n = self.players
        if not indices.is_pairwise(self.index):
            return torch.stack([self._average(self._split(self.table, i), (i,)) for i in range(n)], -1)
        rows = self.table.new_zeros(self.table.shape[0], n, n)
        for i in range(n):
            halves = self._split(self.table, i)
            for j in range(i):
                quarters = tuple(part for half in halves for part in self._split(half, j))
                rows[:, i, j] = rows[:, j, i] = self._average(quarters, (i, j))
        return rows

    def _average(self, parts: tuple[Tensor, ...], around: tuple[int, ...]) -> Tensor:
        """Mean of the difference over contexts; `parts` are v without, with (none, j, i, ij for a pair)."""
        without = parts[0]
        delta = parts[1] - parts[0]
        if len(parts) == 4:
            delta = (parts[3] - parts[2]) - delta
        if self.weighting == "gibbs":
            log_weight = without / self.temperature
        else:
            size = self.size[None]
            for bit in around:
                size = self._split(size, bit)[0]
            others = torch.tensor(self.players - len(around), device=size.device)
            log_weight = indices.log_size_weight(self.index, others, size).expand_as(delta)
        return (log_weight.softmax(-1) * delta).sum(-1)

    @staticmethod
    def _split(table: Tensor, bit: int) -> tuple[Tensor, Tensor]:
        """The coalitions without and with player `bit`, (B, half) each; `bit` counts from the lowest left."""
        halves = table.view(table.shape[0], -1, 2, 2**bit)
        return halves[:, :, 0].flatten(1), halves[:, :, 1].flatten(1)
