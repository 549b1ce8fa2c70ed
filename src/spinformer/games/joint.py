"""SV and BV of a norm game in one pass: half the operations of two calls of `estimate_values`, the same numbers.

On a device a short input costs as much as it has operations, however small they are. The coalitions of both indices
stand side by side, so sums, marginals and the control variate are found for all of them at once. BV's contexts are
fair coins, as BII's are: its sums serve the low-rank interactions too.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from spinformer.games.control import SquaredNormControl
from spinformer.games.indices import Index
from spinformer.games.norm import NormGame, Sums
from spinformer.games.proposals import SizeWeighted
from spinformer.precision import full_precision

NAMES: tuple[Index, ...] = ("SV", "BV")


class Joint(NamedTuple):
    """values: SV and BV, (B, 2, n); sums: of BV's coalitions, which are also those of BII."""

    values: Tensor
    sums: Sums


@full_precision
def estimate_joint(game: NormGame, budget: int, *, seed: Tensor, shared: bool) -> Joint:
    """mean over k of (Delta_i v(T_k) - Delta_i h(T_k)) + the index of h, for SV and BV

    What `estimate_values` gives with the control variate for SV from `seed` and for BV from `seed + 1`.
    """
    counts = game.counts()
    draws = [
        SizeWeighted(name, counts).draw(game, budget, seed + place, paired=True, shared=shared)
        for place, name in enumerate(NAMES)
    ]
    control = SquaredNormControl(game)
    sums = game.sums(torch.cat(draws, 1))  # (B, 2 K, n)
    singles = game.singles_of(sums)
    rest = game.marginals_of(singles)[0] - control.marginals(singles)
    values = rest.unflatten(1, (len(NAMES), budget)).mean(2) + control.exact_players(NAMES)
    if game.mask is not None:
        values = values * game.mask[:, None]
    return Joint(values, Sums(*(part[:, budget:] for part in sums)))
