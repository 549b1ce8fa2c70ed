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

from spinformer._base import checks
from spinformer.attractor.couplings import SpinCouplings
from spinformer.attractor.energy import check_inputs, chunks, energy_and_attention, scores


def zeros(couplings: SpinCouplings) -> dict[str, Tensor]:
    """A gradient to add to."""
    return {name: torch.zeros_like(tensor) for name, tensor in couplings.storage().items()}


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
    check_inputs(couplings, x, strength, clamp, chunk)
    _check_target(couplings, x, into, sites)
    return add_energy_gradient(couplings, x, into, strength, clamp, sites, chunk)


@torch.no_grad()
def add_energy_gradient(
    couplings: SpinCouplings,
    x: Tensor,
    into: dict[str, Tensor],
    strength: float = 1.0,
    clamp: float | None = None,
    sites: range | None = None,
    chunk: int | None = None,
) -> Tensor:
    """`energy_gradient` of what was checked before."""
    rows = range(x.shape[1]) if sites is None else sites
    total = x.new_zeros(())
    for part in chunks(rows, chunk):
        energies, alpha = energy_and_attention(scores(couplings, x, part, strength), clamp)
        total += energies.sum()
        couplings.outer(x[:, part], alpha, x, part, into, -strength / len(x))  # gradient of ATT Eq. 7
    couplings.clear_diagonal(into)
    return total / (len(x) * len(rows))


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
    check_inputs(couplings, x, strength, chunk=chunk)
    _check_target(couplings, x, into, sites)
    if couplings.check_spins(visible, "visible").shape != x.shape:
        raise ValueError(f"expected as many visible spins as spins, {tuple(x.shape)}; got {tuple(visible.shape)}")
    return add_field_gradient(couplings, x, visible, into, strength, sites, chunk)


@torch.no_grad()
def add_field_gradient(
    couplings: SpinCouplings,
    x: Tensor,
    visible: Tensor,
    into: dict[str, Tensor],
    strength: float = 1.0,
    sites: range | None = None,
    chunk: int | None = None,
) -> Tensor:
    """`field_gradient` of what was checked before."""
    rows = range(x.shape[1]) if sites is None else sites
    share = strength / (x.shape[1] - 1)
    total = x.new_zeros(())
    for part in chunks(rows, chunk):
        error = couplings.pull(None, visible, part) * share - x[:, part]
        total += error.square().sum()
        couplings.outer(error, None, visible, part, into, share / len(x))
    couplings.clear_diagonal(into)
    return total / x[:, rows.start : rows.stop].square().sum()


def _check_target(couplings: SpinCouplings, x: Tensor, into: dict[str, Tensor], sites: range | None) -> None:
    """At least one sample, a gradient shaped as the parameters, and sites that there are."""
    if not len(x):
        raise ValueError("expected at least one sample, since the gradient is that of their mean; got none")
    expected = {name: tuple(tensor.shape) for name, tensor in couplings.storage().items()}
    tensors = into if isinstance(into, dict) else {}
    given = {name: tuple(getattr(tensor, "shape", ())) for name, tensor in tensors.items()}
    if given != expected or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise ValueError(f"into must hold tensors of the shapes {expected}; got {given or type(into).__name__}")
    if sites is not None:
        checks.instance("sites", sites, range)
        if not len(sites) or sites.step != 1 or sites.start < 0 or sites.stop > x.shape[1]:
            raise ValueError(f"sites must be a range within 0 to {x.shape[1]} that is not empty; got {sites}")
