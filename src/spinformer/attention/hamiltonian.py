"""From values and interactions of a game to the fields and couplings of an Ising model, in two kinds of units."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spinformer._base.precision import safe_divide
from spinformer.attention.settings import Settings
from spinformer.ising import Couplings
from spinformer.kernels.share_units import SOFTNESS

# Couplings have at most this part of the critical strength, beyond which the mean field would cease to be unique.
CRITICAL = 0.95


@dataclass(frozen=True)
class Units:
    """Of share units, each (B,): gain of the fields; part of the critical strength that couplings may have."""

    gain: Tensor
    part: Tensor


def hamiltonian(
    values: Tensor,
    gate: Tensor,
    temperature: Tensor,
    interactions: Couplings,
    counts: Tensor,
    mask: Tensor | None,
    settings: Settings,
    units: Units | None,
) -> tuple[Tensor, Tensor | None]:
    """Fields (B, n), and the factor (B,) that makes couplings of the interactions, None for 1.

    The paper's, or in units of a player's mean share. values: phi and beta, (B, 2, n).
    """
    phi, beta = _normalised(values, settings).unbind(1)
    field = torch.lerp(beta, phi, gate)  # NGT Eq. 6
    if units is None:
        return field, None
    count = counts.to(field.dtype)
    field = units.gain[:, None] * (count[:, None] * field - 1)
    if mask is not None:
        field = field * mask
    share = safe_divide(count, values[:, 1].abs().sum(-1))
    return field, share * units.part * temperature / (share * interactions.norm() + SOFTNESS)


def _normalised(values: Tensor, settings: Settings) -> Tensor:
    """phi and beta, (B, 2, n), over their L1 norms or their sums."""
    if settings.normalisation == "L1":
        return safe_divide(values, values.abs().sum(-1, keepdim=True))
    total = values.sum(-1, keepdim=True)
    return total.sign() * safe_divide(values, total.abs())
