"""From a game to attention: values and interactions estimated, the Ising model they make, its mean field."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer.attention.output import Diagnostics, HeadCouplings, NeuroGameOutput
from spinformer.attention.settings import AUTO_LINEAR, Settings
from spinformer.games import (
    Game,
    NormGame,
    estimate_joint,
    estimate_low_rank,
    estimate_values,
    low_rank_of,
    make_proposal,
)
from spinformer.games.joint import NAMES
from spinformer.games.norm import Sums
from spinformer.ising import Couplings, DenseCouplings, Ising, LowRankCouplings, mean_field
from spinformer.ising.mean_field import MeanField
from spinformer.precision import safe_divide

# In share units, couplings whose norm is well below this stay as weak as they are.
SOFTNESS = 0.1
# The most that couplings may have of the strength at which the mean field would cease to be unique.
CRITICAL = 0.95


@dataclass(frozen=True)
class Units:
    """Of share units, each (B,). gain: of the fields; part: of the critical strength that couplings may have."""

    gain: Tensor
    part: Tensor


@dataclass(frozen=True)
class Played:
    """Of B games of n players, our names and the paper's symbols as in `NeuroGameOutput`, without heads: (B, n)."""

    shapley: Tensor
    banzhaf: Tensor
    gate: Tensor
    fields: Tensor
    interactions: Couplings
    couplings: Couplings
    attention: Tensor
    ess: Tensor
    solved: MeanField

    def output(self, pooled: Tensor, heads: int) -> NeuroGameOutput:
        """With the B games as B / heads texts of so many heads each."""

        def by_head(x: Tensor) -> Tensor:
            return x.unflatten(0, (-1, heads))

        return NeuroGameOutput(
            pooled=pooled,
            attention=by_head(self.attention),
            shapley=by_head(self.shapley),
            banzhaf=by_head(self.banzhaf),
            gate=by_head(self.gate),
            fields=by_head(self.fields),
            couplings=HeadCouplings(self.couplings, heads),
            interactions=HeadCouplings(self.interactions, heads),
            magnetization=by_head(self.solved.magnetization),
            diagnostics=Diagnostics(
                ess=by_head(self.ess),
                residual=by_head(self.solved.residual),
                converged=by_head(self.solved.converged),
                steps=by_head(self.solved.steps),
            ),
        )


def play(
    game: Game,
    gate: Tensor,
    temperature: Tensor,
    settings: Settings,
    units: Units | None,
    *,
    budget: int,
    seed: Tensor,
    shared: bool,
) -> Played:
    """J_i from phi, beta and the gate (Eq. 6), J_ij (Eq. 9), <s> = tanh((J_i + sum_j J_ij <s_j>) / gamma) (Eq. 16),
    alpha = (1 + <s>) / 2 (Eq. 11), for every game of a batch.

    gate: lambda, (B, n); temperature: gamma, (B,), positive; units: None for the paper's; budget: K; seed, shared:
    as in `estimate_values`.
    """
    common: dict[str, Any] = {
        "weighting": settings.weighting,
        "temperature": temperature,
        "proposal": settings.proposal,
        "shared": shared,
    }
    sampled: dict[str, Any] = {"estimator": settings.estimator, "errors": False, **common}
    sums: Sums | None = None
    if settings.controlled and isinstance(game, NormGame):
        values, sums = estimate_joint(game, budget, seed=seed, shared=shared)
        ess = torch.full_like(temperature, budget)  # equal weights
    else:
        if settings.proposal != "uniform":
            sampled["proposal"] = make_proposal(settings.proposal, game, "BV", temperature, group=budget)
        both = [estimate_values(game, name, budget, seed=seed + place, **sampled) for place, name in enumerate(NAMES)]
        values = torch.stack([estimate.values for estimate in both], 1)  # (B, 2, n)
        ess = torch.minimum(*(_mean(estimate.ess, game.mask) for estimate in both))
    interactions: Couplings
    linear = settings.couplings == "linear" or (settings.couplings == "auto" and game.players > AUTO_LINEAR)
    if linear and isinstance(game, NormGame):
        parts = low_rank_of(game, sums) if sums else estimate_low_rank(game, budget, seed=seed + 1, **common)
        interactions = LowRankCouplings.smaller(*parts)
    else:
        pairs = estimate_values(game, "BII", budget, seed=seed + 1, **sampled).values
        interactions = DenseCouplings(pairs, hollow=True)
    return settle(game, values, interactions, gate, temperature, settings, units, ess)


def settle(
    game: Game,
    values: Tensor,
    interactions: Couplings,
    gate: Tensor,
    temperature: Tensor,
    settings: Settings,
    units: Units | None,
    ess: Tensor,
) -> Played:
    """The same from values that are known: SV and BV, (B, 2, n), and interactions; ess: (B,), passed on."""
    fields, couplings = _hamiltonian(game, values, gate, temperature, interactions, units)
    solved = mean_field(
        Ising(fields, couplings, temperature, game.mask, trusted=True),
        max_steps=settings.max_steps,
        damping=settings.damping,
        tol=settings.tol,
        correction=settings.correction,
        backward=settings.backward,
        solver=settings.solver,
    )
    attention = (1 + solved.magnetization) * (0.5 if game.mask is None else 0.5 * game.mask)
    shapley, banzhaf = values.unbind(1)
    return Played(shapley, banzhaf, gate, fields, interactions, couplings, attention, ess, solved)


def _hamiltonian(
    game: Game,
    values: Tensor,
    gate: Tensor,
    temperature: Tensor,
    interactions: Couplings,
    units: Units | None,
) -> tuple[Tensor, Couplings]:
    """Fields (B, n) and couplings from SV and BV, (B, 2, n): the paper's, or in units of a player's mean share."""
    total = values.abs().sum(-1, keepdim=True)
    shapley, banzhaf = safe_divide(values, total).unbind(1)
    field = torch.lerp(banzhaf, shapley, gate)
    if units is None:
        return field, interactions
    count = game.counts().to(field.dtype)
    field = units.gain[:, None] * (count[:, None] * field - 1)
    if game.mask is not None:
        field = field * game.mask
    shares = interactions.scaled(safe_divide(count, total[:, 1, 0]))
    strength = units.part * temperature / (shares.norm() + SOFTNESS)
    return field, shares.scaled(strength)


def _mean(x: Tensor, mask: Tensor | None) -> Tensor:
    return x.mean(-1) if mask is None else (x * mask).sum(-1) / mask.sum(-1)
