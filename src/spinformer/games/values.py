"""The values of all kinds of a batch of games, and which of their players do something."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from spinformer.games.estimate import Estimate

PLAYER_INDICES = ("SV", "BV")
GAME_INDICES = (*PLAYER_INDICES, "BII", "SII")
# Weight of a player who does nothing, beside the activity of those who do.
IDLE = 0.03


@dataclass(frozen=True)
class GameValues:
    """shapley, banzhaf: (B, n) each; interactions: Banzhaf's, (B, n, n); shapley_interactions: Shapley's; empty: v of
    the empty coalition, (B,).
    """

    shapley: Estimate
    banzhaf: Estimate
    interactions: Estimate
    shapley_interactions: Estimate
    empty: Tensor

    @classmethod
    def of(cls, estimates: Mapping[str, Estimate], empty: Tensor) -> "GameValues":
        """From the estimates of GAME_INDICES by their names."""
        return cls(estimates["SV"], estimates["BV"], estimates["BII"], estimates["SII"], empty)

    @property
    def by_index(self) -> dict[str, Estimate]:
        """The estimates by the names of GAME_INDICES."""
        estimates = (self.shapley, self.banzhaf, self.interactions, self.shapley_interactions)
        return dict(zip(GAME_INDICES, estimates, strict=True))

    @property
    def activity(self) -> Tensor:
        """a_i = sqrt(phi_i^2 + sum over j of I_ij^2 / 2), (B, n): how much a player does, alone or with others."""
        return activity(self.shapley.values, self.shapley_interactions.values)

    def row(self, row: int, count: int) -> "GameValues":
        """One game of a batch, of so many players, as a batch of one on the CPU; padding must come last."""
        parts = {}
        for name, estimate in self.by_index.items():
            tensors = (part[row : row + 1].cpu() for part in (estimate.values, estimate.stderr, estimate.ess))
            values, stderr, ess = (part[:, :count] if part.dim() == 2 else part[:, :count, :count] for part in tensors)
            parts[name] = Estimate(values, stderr, ess, estimate.budget)
        return GameValues.of(parts, self.empty[row : row + 1].cpu())

    def widen(self, errors: Mapping[str, Tensor]) -> "GameValues":
        """With further standard errors, independent of these, by the name of the index."""
        parts = {
            name: replace(estimate, stderr=torch.hypot(estimate.stderr, errors[name].to(estimate.stderr)))
            for name, estimate in self.by_index.items()
        }
        return GameValues.of(parts, self.empty)


def activity(shapley: Tensor, interactions: Tensor) -> Tensor:
    """`GameValues.activity`, from Shapley values (..., n) and interactions (..., n, n)."""
    return (shapley.square() + interactions.square().sum(-1) / 2).sqrt()


def player_weights(active: Tensor, mask: Tensor | None = None) -> Tensor:
    """w_i = (a_i + IDLE) / mean, (..., n): what is not known about a game concerns the players that do something.

    mask: (..., n), true for players; the others have weight 0.
    """
    weight = active.double() + IDLE
    if mask is None:
        return weight / weight.mean(-1, keepdim=True)
    weight = weight * mask
    return weight / (weight.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True))
