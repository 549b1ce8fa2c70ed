"""Closed local gradients of the couplings: what training uses instead of backpropagation.

    energy   ∂e_i/∂J_ij = -λ α_ij x_i x_j'
    field    ∂/∂J_ij ½|x_i - h_i|² = (h_i - x_i) x_j' λ / (N - 1),     h_i = λ/(N-1) Σ_j J_ij x_j

The first is the gradient of the paper's loss (ATT Eq. 7): an attention-weighted Hebbian product. It drops the partition
function, so the norm of J must be fixed by other means. The second keeps it: h_i = -∂e_i/∂x_i at x_i = 0 is the field
that the others exert on an absent spin, and ½|x_i - h_i|² is, up to a constant, minus the log of the conditional
p(x_i | others) of a Gaussian spin in that field: Besag's pseudo-likelihood. Both are sums over samples of products of
the spins at sites i and j; the gradient of row i needs row i of J alone.

Memory beside the parameters: the gradient (as large as they are) and B chunk N (d + 2) floats.
"""

import torch
from torch import Tensor

from spinformer.attractor.couplings import SpinCouplings
from spinformer.attractor.energy import chunks, energy_and_attention, scores


def zeros(couplings: SpinCouplings) -> dict[str, Tensor]:
    """A gradient to add to."""
    return {name: torch.zeros_like(tensor) for name, tensor in couplings.storage().items()}


@torch.no_grad()
def energy_gradient(
    couplings: SpinCouplings,
    x: Tensor,
    into: dict[str, Tensor],
    *,
    strength: float = 1.0,
    clamp: float | None = None,
    sites: range | None = None,
    chunk: int | None = None,
) -> Tensor:
    """Add d mean_b(Σ_i e_i) / d parameters to `into`, for i in `sites`; returns the mean of e_i."""
    rows = range(x.shape[1]) if sites is None else sites
    total = x.new_zeros(())
    for part in chunks(rows, chunk):
        energies, alpha = energy_and_attention(scores(couplings, x, part, strength), clamp)
        total += energies.sum()
        couplings.outer(x[:, part], alpha, x, part, into, -strength / len(x))  # gradient of ATT Eq. 7
    couplings.clear_diagonal(into)
    return total / (len(x) * len(rows))


@torch.no_grad()
def field_gradient(
    couplings: SpinCouplings,
    x: Tensor,
    visible: Tensor,
    into: dict[str, Tensor],
    *,
    strength: float = 1.0,
    sites: range | None = None,
    chunk: int | None = None,
) -> Tensor:
    """Add d mean_b(Σ_i ½|x_i - h_i(visible)|²) / d parameters to `into`; returns mean |x_i - h_i|² / mean |x_i|².

    visible: the spins that make the fields h_i: `x`, or a corrupted copy of it.
    """
    rows = range(x.shape[1]) if sites is None else sites
    share = strength / (x.shape[1] - 1)
    total = x.new_zeros(())
    for part in chunks(rows, chunk):
        error = couplings.pull(None, visible, part) * share - x[:, part]
        total += error.square().sum()
        couplings.outer(error, None, visible, part, into, share / len(x))
    couplings.clear_diagonal(into)
    return total / x[:, rows.start : rows.stop].square().sum()
