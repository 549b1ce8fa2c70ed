"""Interactions of a norm game in low rank: what makes the attention linear in the number of players.

To second order in v_i and v_j, with S the sum over coalition C, r = |S| and s = S / r, NGT Eq. 8 is

    Delta_ij v(C) = v_i' H v_j,   H = (f'/r) (I - s s') + f'' s s',

so the mean over K coalitions with weights w_k is, off the diagonal,

    J = c V V' - A' D A,   c = sum of w_k f'/r_k,   A_ki = s_k . v_i,   D_k = w_k (f'/r_k - f''),

of rank d + K. The expansion is taken half-way: of a player's own vector one half counts in S, whether the player is in
C or not. J times a vector costs O(n (d + K)), and J is never formed. Under Gibbs weights a coalition counts by its own
value, exp(v(C) / temperature), not by that of C - ij: one weight for all pairs is what keeps the rank low.
"""

from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision, safe_divide, safe_sqrt
from spinformer._base.rng import as_seed
from spinformer.games.indices import WEIGHTINGS, Weighting
from spinformer.games.named_proposals import ProposalName, make_proposal
from spinformer.games.norm import NormGame, Sums
from spinformer.games.twins import mean_of_twins
from spinformer.kernels.low_rank import can_join, joined


@full_precision
def estimate_low_rank(
    game: NormGame,
    budget: int,
    *,
    weighting: Weighting,
    temperature: float | Tensor,
    proposal: ProposalName,
    seed: Tensor | int,
    shared: bool,
) -> tuple[Tensor, Tensor]:
    """Factors U (B, n, d + K) and weights w (B, d + K) with J = U diag(w) U' off the diagonal: BII to second order.

    The K = `budget` coalitions are those that `estimate_values` draws for BII. temperature: a number or (B,).
    """
    checks.instance("game", game, NormGame)
    checks.choice("weighting", weighting, WEIGHTINGS)
    checks.at_least("budget", budget, 2)
    source = make_proposal(proposal, game, "BII", temperature)
    coalitions = source.draw(game, budget, as_seed(seed), paired=True, shared=shared)
    log_weight = None
    if weighting == "gibbs":
        gamma = torch.as_tensor(temperature, dtype=game.dtype, device=game.device).expand(game.batch)
        log_weight = game.evaluate(coalitions) / gamma[:, None]  # NGT Eq. 31
    if proposal != "uniform":
        log_weight = (0.0 if log_weight is None else log_weight) - source.log_probability(coalitions)
    return low_rank_from_sums(game, game.sums(coalitions), log_weight)


@full_precision
def low_rank_from_sums(game: NormGame, sums: Sums, log_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Factors and weights of J from the sums of K coalitions; log_weight: (B, K), unnormalised, None where equal."""
    checks.instance("game", game, NormGame)
    checks.instance("sums", sums, Sums)
    if log_weight is not None:
        checks.shape("log_weight", log_weight, sums.square.shape[:2])
    norm = safe_sqrt(sums.square)  # (B, K, 1)
    along = sums.products + (0.5 - sums.inside) * game.squares[:, None]  # 0 at padding
    direction = safe_divide(along, norm)  # (B, K, n)
    weight = 1 / norm.shape[1] if log_weight is None else log_weight.softmax(-1)[..., None]

    scale = game.scale[:, None, None]
    across = safe_divide(scale, norm)  # f'/r as a function of the unscaled sum
    bent = across  # f'/r - f''
    if game.activation == "tanh":
        slope = 1 - (scale * norm).tanh().square()
        across = across * slope
        bent = across + 2 * scale.square() * (scale * norm).tanh() * slope
    elif game.activation == "log1p":
        slope = 1 / (1 + scale * norm)
        across = across * slope
        bent = across + (scale * slope).square()

    spread = (weight * across).sum(1).expand(-1, game.values.shape[2])
    factors = _joined(game.values, mean_of_twins(direction, game.twins()))
    return factors, torch.cat([spread, (-weight * bent).squeeze(-1)], -1)


def _joined(values: Tensor, direction: Tensor) -> Tensor:
    """U = (V, A'), (B, n, d + K)."""
    if can_join(values, direction) and not torch.compiler.is_compiling():
        factors: Tensor = _Joined.apply(values, direction)
        return factors
    return torch.cat([values, direction.mT], -1)


class _Joined(torch.autograd.Function):
    """The same by a kernel; the gradients are the two parts of that of U."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, direction: Tensor) -> Tensor:
        ctx.columns = values.shape[2]
        return joined(values, direction)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (g,) = gradients
        return g[..., : ctx.columns], g[..., ctx.columns :].mT
