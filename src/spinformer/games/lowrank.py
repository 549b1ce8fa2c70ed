"""Interactions of a norm game in low rank: what makes the attention linear in the number of players.

To second order in v_i and v_j, with S the sum over coalition C, r = |S| and s = S / r,

    Delta_ij v(C) = v_i' H v_j,   H = (f'/r) (I - s s') + f'' s s',

so the mean over K coalitions with weights w_k is, off the diagonal,

    J = c V V' - A' D A,   c = sum of w_k f'/r_k,   A_ki = s_k . v_i,   D_k = w_k (f'/r_k - f''),

of rank d + K. The expansion is taken half-way along: a player's own share of S counts one half, whether it is in
C or not. J times a vector costs O(n (d + K)), and J is never formed. Under Gibbs weights a coalition counts by its own
value, exp(v(C) / temperature), not by that of C - ij: one weight for all pairs is what keeps the rank low.
"""

import torch
from torch import Tensor

from spinformer.games.estimate import ProposalName, make_proposal
from spinformer.games.indices import Weighting
from spinformer.games.norm import NormGame
from spinformer.precision import full_precision, safe_divide, safe_sqrt


@full_precision
def low_rank_interactions(
    game: NormGame, coalitions: Tensor, log_weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Factors U (B, n, d + K) and weights w (B, d + K) with J = U diag(w) U' off the diagonal.

    coalitions: (B, K, n); log_weight: (B, K), unnormalised, or None for equal weights.
    """
    inside = coalitions.to(game.dtype)
    budget, dim = coalitions.shape[1], game.values.shape[2]
    sums = inside @ game.values  # (B, K, d)
    square = sums.square().sum(-1)
    norm = safe_sqrt(square)
    along = sums @ game.values.mT + (0.5 - inside) * game.squares[:, None]  # (B, K, n)
    if game.mask is not None:
        along = along * game.mask[:, None]
    direction = safe_divide(along, norm[..., None].expand_as(along))
    weight = torch.full_like(norm, 1 / budget) if log_weight is None else log_weight.softmax(-1)

    scale = game.scale[:, None]
    x = scale * norm
    if game.activation == "tanh":
        first, second = 1 - x.tanh().square(), -2 * x.tanh() * (1 - x.tanh().square())
    elif game.activation == "log1p":
        first, second = 1 / (1 + x), -1 / (1 + x).square()
    else:
        first, second = torch.ones_like(x), torch.zeros_like(x)
    across = safe_divide(scale * first, norm)  # f'/r as a function of the unscaled sum
    bend = scale.square() * second

    spread = (weight * across).sum(-1, keepdim=True).expand(-1, dim)
    factors = torch.cat([game.values, direction.mT], -1)
    return factors, torch.cat([spread, -weight * (across - bend)], -1)


@full_precision
def estimate_low_rank(
    game: NormGame,
    budget: int,
    *,
    weighting: Weighting,
    temperature: Tensor,
    proposal: ProposalName,
    seed: Tensor,
    shared: bool,
) -> tuple[Tensor, Tensor]:
    """`low_rank_interactions` of `budget` coalitions, drawn as `estimate_values` draws those of BII."""
    source = make_proposal(proposal, game, "BII", temperature)
    coalitions = source.draw(game, budget, seed, paired=True, shared=shared)
    log_weight = None
    if weighting == "gibbs":
        log_weight = game.evaluate(coalitions) / temperature[:, None]
    if proposal != "uniform":
        log_weight = (0.0 if log_weight is None else log_weight) - source.log_probability(coalitions)
    return low_rank_interactions(game, coalitions, log_weight)
