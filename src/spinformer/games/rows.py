"""Where the estimates of a batch of games are written: the rows of games, and the columns of their players."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from spinformer.games.game import Game
from spinformer.games.indices import INDICES
from spinformer.games.values import GAME_INDICES

# By the name of the index: means and standard errors, (B, n) or (B, n, n) each.
Estimates = dict[str, list[Tensor]]


def empty_estimates(game: Game) -> Estimates:
    """Zeros, for means and standard errors of GAME_INDICES: (B, n) or (B, n, n) each."""
    shapes = {name: (game.batch, *[game.players] * INDICES[name].order) for name in GAME_INDICES}
    options: dict[str, Any] = {"dtype": torch.float64, "device": game.device}
    return {name: [torch.zeros(shape, **options) for _ in "ms"] for name, shape in shapes.items()}


def player_columns(game: Game) -> list[Tensor]:
    """The columns of each game's players."""
    if game.mask is None:
        return [torch.arange(game.players)] * game.batch
    return [row.nonzero().squeeze(1) for row in game.mask.cpu()]


def alike(columns: Sequence[Tensor]) -> list[tuple[Tensor, list[int]]]:
    """The places of games whose players have the same columns, and these; games of few players first."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, where in enumerate(columns):
        groups.setdefault(tuple(where.tolist()), []).append(place)
    return [(columns[groups[key][0]], groups[key]) for key in sorted(groups, key=len)]


def places_of(rows: Sequence[int], columns: Tensor, whole: Tensor) -> tuple[Tensor, ...]:
    """The index of the same columns of some rows, in tensors (B, n) or, of pairs, (B, n, n)."""
    row, where = torch.tensor(rows, device=whole.device), columns.to(whole.device)
    return (row[:, None], where) if whole.dim() == 2 else (row[:, None, None], where[:, None], where)


def write(estimates: Estimates, rows: Sequence[int], columns: Tensor, found: Mapping[str, Sequence[Tensor]]) -> None:
    """Of games with the same columns, mean and standard error of the indices in `found`, or the mean alone."""
    places: dict[int, tuple[Tensor, ...]] = {}  # by the dimensions of a tensor
    for name, parts in found.items():
        for whole, part in zip(estimates[name], parts, strict=False):
            if whole.dim() not in places:
                places[whole.dim()] = places_of(rows, columns, whole)
            whole[places[whole.dim()]] = part


def write_one(estimates: Estimates, row: int, columns: Tensor, found: Mapping[str, Sequence[Tensor]]) -> None:
    """The same of one game, without a batch."""
    write(estimates, [row], columns, {name: [part[None] for part in parts] for name, parts in found.items()})
