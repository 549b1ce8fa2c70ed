"""P(|T| = t) of a fair coin for each of the others: tables that the kernels of control variates read."""

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from spinformer._base.binomial import fair_coins
from spinformer._base.recording import recording
from spinformer.kernels.support import block

WIDE = 2048  # players up to which the chances of all counts are kept in one table
BY_COUNT, BY_GAME, ALL_ALIKE = range(3)


class Chances(NamedTuple):
    """table: rows of chances, float64; row: which is a game's: that of its number of players, its own, or the first."""

    table: Tensor
    row: int


def chances_of(counts: Tensor, n: int, masked: bool, fewer: int = 0) -> Chances:
    """For games of so many players, less `fewer`, (B,), among n places. Tables are kept, but not within a graph."""
    if torch.compiler.is_compiling() or recording() or (n > WIDE and masked):
        return Chances(_chances(counts.double()[:, None] - fewer, n), BY_GAME)
    if n <= WIDE:
        return Chances(_all_counts(block(n), str(counts.device)), BY_COUNT)
    return Chances(_one_count(n - fewer, n, str(counts.device)), ALL_ALIKE)


def _chances(count: Tensor, width: int) -> Tensor:
    return fair_coins((count - 1).clamp_min(0), torch.arange(width, dtype=torch.float64, device=count.device))


@lru_cache(maxsize=16)
def _all_counts(width: int, device: str) -> Tensor:
    with torch.inference_mode(False), torch.no_grad():
        return _chances(torch.arange(width + 1, dtype=torch.float64, device=device)[:, None], width)


@lru_cache(maxsize=16)
def _one_count(count: int, n: int, device: str) -> Tensor:
    with torch.inference_mode(False), torch.no_grad():
        return _chances(torch.full((1, 1), float(count), dtype=torch.float64, device=device), n)
