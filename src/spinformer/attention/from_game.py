"""From a game to attention: its values and interactions, the Ising model made of them, the mean field of that."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer.attention.couplings import low_rank_couplings
from spinformer.attention.hamiltonian import Units, hamiltonian
from spinformer.attention.output import Diagnostics, HeadCouplings, NeuroGameOutput
from spinformer.attention.settings import LOW_RANK_INDEX, Settings
from spinformer.attention.settle import settle_fused
from spinformer.games import (
    Game,
    NormGame,
    estimate_low_rank,
    estimate_norm_values,
    estimate_values,
    low_rank_from_sums,
)
from spinformer.games.named_proposals import proposal_of
from spinformer.games.norm import Sums
from spinformer.games.one_pass import estimate_norm_pairs
from spinformer.games.values import PLAYER_INDICES
from spinformer.ising import Couplings, DenseCouplings, Ising, LowRankCouplings, MeanField


@dataclass(frozen=True)
class GameAttention:
    """Of B games of n players: names and symbols as in `NeuroGameOutput`, without attention heads, (B, n).

    shapley, banzhaf: phi and beta, by the settings' `player_indices`; ess: (B,); solved: the mean field.
    """

    shapley: Tensor
    banzhaf: Tensor
    gate: Tensor
    fields: Tensor
    interactions: Couplings
    factor: Tensor | None
    attention: Tensor
    ess: Tensor
    solved: MeanField

    @property
    def couplings(self) -> Couplings:
        """The interactions as they enter the Hamiltonian."""
        return self.interactions if self.factor is None else self.interactions.scaled(self.factor)

    def output(self, pooled: Tensor, heads: int) -> NeuroGameOutput:
        """With the B games as B / heads texts of so many attention heads each."""

        def by_head(x: Tensor) -> Tensor:
            return _by_head(x, heads)

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
            diagnostics=self.diagnostics(heads),
        )

    def diagnostics(self, heads: int) -> Diagnostics:
        """How far to trust it."""
        solved = self.solved
        parts = (self.ess, solved.residual, solved.converged, solved.steps)
        return Diagnostics(*(_by_head(part, heads) for part in parts))


def game_attention(
    game: Game,
    gate: Tensor,
    temperature: Tensor,
    settings: Settings,
    units: Units | None,
    *,
    budget: int,
    seed: Tensor,
    shared: bool,
) -> GameAttention:
    """J_i = lambda_i phi_i / |phi|_1 + (1 - lambda_i) beta_i / |beta|_1                     NGT Eq. 6
    <s_i> = tanh((J_i + sum_j J_ij <s_j>) / gamma),   alpha_i = (1 + <s_i>) / 2           NGT Eqs. 16, 11

    with phi, beta and J_ij estimated from K coalitions, for every game of a batch. gate: lambda, (B, n); temperature:
    gamma, (B,), positive; units: None for the paper's; budget: K; seed, shared: as in `estimate_values`.
    """
    common: dict[str, Any] = {
        "weighting": settings.weighting,
        "temperature": temperature,
        "proposal": settings.proposal,
        "shared": shared,
    }
    sampled: dict[str, Any] = {"estimator": settings.estimator, "errors": False, **common}
    sums: Sums | None = None
    names = settings.player_indices
    if settings.controlled and isinstance(game, NormGame) and names == PLAYER_INDICES:
        values, sums = estimate_norm_values(game, budget, seed=seed, shared=shared)
        ess = torch.full_like(temperature, budget)  # equal weights
    else:
        if settings.proposal != "uniform":
            sampled["proposal"] = proposal_of(settings.proposal, game, names[0], temperature, budget)
        both = [estimate_values(game, name, budget, seed=seed + offset, **sampled) for offset, name in enumerate(names)]
        values = torch.stack([estimate.values for estimate in both], 1)  # (B, 2, n)
        ess = torch.minimum(*(_mean(estimate.ess, game.mask) for estimate in both))
    interactions: Couplings
    if settings.couplings == "none":
        interactions = DenseCouplings(values.new_zeros(game.batch, game.players, game.players), hollow=True)
    elif settings.linear(game.players) and isinstance(game, NormGame):
        if sums and settings.usual_solver:
            interactions = low_rank_couplings(game, sums)
        else:
            parts = low_rank_from_sums(game, sums) if sums else estimate_low_rank(game, budget, seed=seed + 1, **common)
            interactions = LowRankCouplings.smaller(*parts)
    else:
        pairs = None
        if sums and isinstance(game, NormGame) and settings.pair_index == LOW_RANK_INDEX:  # BV's coalitions are BII's
            pairs = estimate_norm_pairs(game, sums)
        if pairs is None:
            pairs = estimate_values(game, settings.pair_index, budget, seed=seed + 1, **sampled).values  # NGT Eq. 9
        interactions = DenseCouplings(pairs, hollow=True)
    return attention_from_values(game, values, interactions, gate, temperature, settings, units, ess)


def attention_from_values(
    game: Game,
    values: Tensor,
    interactions: Couplings,
    gate: Tensor,
    temperature: Tensor,
    settings: Settings,
    units: Units | None,
    ess: Tensor,
) -> GameAttention:
    """`game_attention` from known phi and beta, (B, 2, n), and interactions; ess: (B,), passed on."""
    arguments = (values, gate, temperature, interactions, game.counts(), game.mask, settings, units)
    known = settle_fused(*arguments)
    fields, factor = known[:2] if known else hamiltonian(*arguments)
    if known:
        solved = known[2]
    else:
        couplings = interactions if factor is None else interactions.scaled(factor)
        solved = settings.solve(Ising(fields, couplings, temperature, game.mask, trusted=True))
    attention = attention_of(solved.magnetization, game.mask)
    phi, beta = values.unbind(1)
    return GameAttention(phi, beta, gate, fields, interactions, factor, attention, ess, solved)


def attention_of(magnetization: Tensor, mask: Tensor | None) -> Tensor:
    """alpha_i = (1 + <s_i>) / 2, 0 at padding                                          NGT Eq. 11"""
    return (1 + magnetization) * (0.5 if mask is None else 0.5 * mask)


def _by_head(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(0, (len(x) // heads, heads))


def _mean(x: Tensor, mask: Tensor | None) -> Tensor:
    return x.mean(-1) if mask is None else (x * mask).sum(-1) / mask.sum(-1)
