"""The form of section 7.3 of the NeuroGame paper: the Ising model of the tokens, written in a fixed number of spins."""

from torch import Tensor

from spinformer._base.precision import full_precision
from spinformer.attention.output import NeuroGameOutput
from spinformer.attention.settings import Settings
from spinformer.ising import DenseCouplings, Ising, MeanField

SPINS = 128  # NGT section 7.4


@full_precision
def solve_spins(game: NeuroGameOutput, weights: Tensor, temperature: Tensor, settings: Settings) -> MeanField:
    """H(s) = S H(sigma),   sigma_i = sum_k p_ik s_k / S                     H: NGT Eq. 10
    h_k = sum_i p_ik J_i,   K_kl = sum_ij p_ik J_ij p_jl / S
    <s_k> = tanh((h_k + sum_{l != k} K_kl <s_l>) / gamma)                  NGT Eq. 16, for S spins instead of n

    s: S spins, however long the text is; sigma_i: the spin of token i as a weighted mean of them, so within [-1, 1];
    weights: p, (B, n, S), within [-1, 1]; J_i, J_ij: fields and couplings of the tokens, of a layer with one attention
    head; temperature: gamma, (1,). The second line is the first, sorted by powers of s. Terms with k = l are constants,
    since s_k^2 = 1. Padding has J_i = J_ij = 0, and so no part in any spin. Returns the mean field of the S spins.

    NGT section 7.3 says that a projection maps the tokens to spins, that fields and interactions come from the game,
    and that the spins' equilibrium is passed to the classifier; section 7.4, that there are 128. How quantities of n
    tokens become those of 128 spins it does not say; this is the choice in which the energy stays the tokens'.
    """
    fields, couplings = game.fields[:, 0], game.couplings.dense()[:, 0]  # (B, n), (B, n, n)
    weights = weights.to(fields.dtype)
    projected = (weights.mT @ fields[..., None]).squeeze(-1)  # (B, S)
    pairs = weights.mT @ couplings @ weights / weights.shape[-1]  # (B, S, S), symmetric but for rounding
    pairs = (pairs + pairs.mT) / 2  # where terms cancel, rounding is all there is
    gamma = temperature.expand(len(fields))
    return settings.solve(Ising(projected, DenseCouplings(pairs), gamma, trusted=True))
