"""Exact index values by enumeration of every coalition: the oracle that every estimator is tested against."""

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer.games.game import Game
from spinformer.games.indices import Index, Weighting, check_index, log_size_weight

MAX_PLAYERS = 20
# Coalitions evaluated at once.
CHUNK = 2**12


@full_precision
def exact_values(game: Game, index: str, weighting: Weighting = "uniform", temperature: float | Tensor = 1.0) -> Tensor:
    """sum over T of P(T) Delta_i v(T)    or    sum over T of P(T) Delta_ij v(T)

    with P as in `spinformer.games.indices`: NGT Eqs. 4, 5, 9 for the uniform weighting, the limit of NGT Eqs. 33, 35,
    36 for the Gibbs weighting. index: the name of a registered index; "SV", "BV" -> (B, n); "SII", "BII" -> (B, n, n)
    with zero diagonal; without the batch dimension for a single game. Padding has value 0. Sums run in float64;
    O(n 2^n) or O(n^2 2^n) time and O(B 2^n) memory. Columns that are padding in every row do not count towards the
    limit of 20 players.
    """
    known = check_index(index, weighting, temperature)
    checks.instance("game", game, Game)
    checks.each("temperature", temperature, game.batch)
    if not game.batch:
        return torch.zeros(0, *[game.players] * known.order, dtype=game.dtype, device=game.device)
    columns = _player_columns(game)
    if len(columns) > MAX_PLAYERS:
        raise ValueError(
            f"exact values enumerate 2**n coalitions and take at most {MAX_PLAYERS} players; got {len(columns)}; "
            "use estimate_values"
        )
    temperature = torch.as_tensor(temperature, dtype=torch.float64, device=game.device).expand(game.batch)
    table = coalition_table(game, columns)
    # Players who change nothing do not change an index of coins, so there padding can be counted with the others.
    mask = game.mask if game.mask is None or known.bias is None else None
    playing = None if mask is None else mask[:, columns]
    values = _Table(table, len(columns), playing, known, weighting, temperature).values().to(game.dtype)
    result = torch.zeros(game.batch, *[game.players] * known.order, dtype=game.dtype, device=game.device)
    if known.pairwise:
        result[:, columns[:, None], columns] = values
        if game.mask is not None:
            result = result * game.mask[:, None] * game.mask[:, :, None]
    else:
        result[:, columns] = values
        if game.mask is not None:
            result = result * game.mask
    return game.unbatch(result)


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


def _player_columns(game: Game) -> Tensor:
    """Columns that hold a player in some row."""
    if game.mask is None:
        return torch.arange(game.players, device=game.device)
    return game.mask.any(0).nonzero().flatten()


class _Table:
    """The values of all coalitions of one batch of games, split along one player or two.

    table: (B, 2**players); playing: (B, players), false for padding that must not be counted in |T|, or None.
    """

    def __init__(
        self,
        table: Tensor,
        players: int,
        playing: Tensor | None,
        index: Index,
        weighting: Weighting,
        temperature: Tensor,
    ) -> None:
        self.table, self.players, self.index, self.weighting = table, players, index, weighting
        self.temperature = temperature[:, None]
        inside = torch.ones(1, players, dtype=torch.long, device=table.device) if playing is None else playing.long()
        position = torch.arange(2**players, device=table.device)[None]
        self.counts = inside.sum(-1, keepdim=True)  # (B, 1) or (1, 1)
        self.size = sum(((position >> bit & 1) * inside[:, bit, None] for bit in range(players)), 0 * position)

    def values(self) -> Tensor:
        """The index of every player, (B, n), or of every pair, (B, n, n)."""
        n = self.players
        if not self.index.pairwise:
            return torch.stack([self._average(self._split(self.table, i), (i,)) for i in range(n)], -1)
        matrix = self.table.new_zeros(self.table.shape[0], n, n)
        for i in range(n):
            halves = self._split(self.table, i)
            for j in range(i):
                quarters = tuple(part for half in halves for part in self._split(half, j))
                matrix[:, i, j] = matrix[:, j, i] = self._average(quarters, (i, j))
        return matrix

    def _average(self, parts: tuple[Tensor, ...], around: tuple[int, ...]) -> Tensor:
        """Mean of the difference over contexts; `parts` are v without, with (none, j, i, ij for a pair)."""
        without = parts[0]
        delta = parts[1] - parts[0]  # NGT Eq. 1
        if len(parts) == 4:
            delta = (parts[3] - parts[2]) - delta  # NGT Eq. 8
        if self.weighting == "gibbs":
            log_weight = without / self.temperature  # NGT Eq. 31
        else:
            size = self.size
            for bit in around:
                size = self._split(size, bit)[0]
            others = (self.counts - len(around)).clamp_min(0)
            log_weight = log_size_weight(self.index, others, size).expand_as(delta)
        return (log_weight.softmax(-1) * delta).sum(-1)

    @staticmethod
    def _split(table: Tensor, bit: int) -> tuple[Tensor, Tensor]:
        """The coalitions without and with player `bit`, (B, half) each; `bit` counts from the lowest one left."""
        halves = table.view(table.shape[0], -1, 2, 2**bit)
        return halves[:, :, 0].flatten(1), halves[:, :, 1].flatten(1)
