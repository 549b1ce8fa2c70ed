"""P(|T| = t) of a fair coin for each of the others: tables that the kernels of control variates read."""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base.binomial import fair_coins
from spinformer._base.recording import recording
from spinformer.kernels.operator import operator
from spinformer.kernels.support import block

WIDE = 2048  # players up to which the chances of all counts are kept in one table
BY_COUNT, BY_GAME, ALL_ALIKE = range(3)
MOST_KEPT = 32  # tables, beside those that graphs read

Key = tuple[int, int, str]  # players if they are the same in all games, else 0; the width of the table; the device
_KEPT: dict[Key, Tensor] = {}
_RECORDED: dict[Key, Tensor] = {}


class Chances(NamedTuple):
    """table: rows of chances, float64; row: which is a game's: that of its number of players, its own, or the first."""

    table: Tensor
    row: int


def chances_of(counts: Tensor, n: int, masked: bool, fewer: int = 0) -> Chances:
    """For games of so many players, less `fewer`, (B,), among n places

    Tables are kept. A CUDA graph that reads one needs it for as long as it lives, so those are kept for good.
    """
    if torch.compiler.is_compiling() or (n > WIDE and masked):
        return Chances(chances_by_game(counts, n, fewer), BY_GAME)
    alike = n > WIDE
    key = (n - fewer if alike else 0, n if alike else block(n), str(counts.device))
    if recording() and key not in _RECORDED:
        if key not in _KEPT:
            return Chances(chances_by_game(counts, n, fewer), BY_GAME)
        _RECORDED[key] = _KEPT[key]
    row = ALL_ALIKE if alike else BY_COUNT
    if key in _RECORDED:
        return Chances(_RECORDED[key], row)
    if key not in _KEPT:
        while len(_KEPT) >= MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        _KEPT[key] = _one_count(*key) if alike else _all_counts(*key[1:])
    return Chances(_KEPT[key], row)


@operator("chances_by_game")
def chances_by_game(counts: Tensor, n: int, fewer: int) -> Tensor:
    """binom(m, t) / 2^m for t < n, (B, n), m one less than the players of a game, of which there are `fewer` less

    One node of a graph: torch.compile would take a minute for the logarithms of factorials.
    """
    return _chances(counts.double()[:, None] - fewer, n)


@chances_by_game.register_fake
def _(counts: Tensor, n: int, fewer: int) -> Tensor:
    return counts.new_empty(counts.shape[0], n, dtype=torch.float64)


def _chances(count: Tensor, width: int) -> Tensor:
    return fair_coins((count - 1).clamp_min(0), torch.arange(width, dtype=torch.float64, device=count.device))


def _all_counts(width: int, device: str) -> Tensor:
    with torch.inference_mode(False), torch.no_grad():
        return _chances(torch.arange(width + 1, dtype=torch.float64, device=device)[:, None], width)


def _one_count(count: int, n: int, device: str) -> Tensor:
    with torch.inference_mode(False), torch.no_grad():
        return _chances(torch.full((1, 1), float(count), dtype=torch.float64, device=device), n)
