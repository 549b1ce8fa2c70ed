"""Local energies, attention and dynamics of vector spins.

    e_i = -log Σ_{j≠i} exp(λ x_i J_ij x_j),     E = Σ_i e_i                                   ATT Eqs. 4, 6
    α_ij = softmax_j(λ x_i J_ij x_j)                                                          ATT Eq. 2
    x_i' = λ Σ_j α_ij J_ij x_j + γ x_i = -∂e_i/∂x_i + γ x_i                                   ATT Eqs. 1, 3

`strength` is λ, which multiplies J wherever it stands (ATT section V-B); `inertia` is γ. `clamp` bounds the scores
λ x_i J_ij x_j from above, as the authors' notebook does; a clamped pair then has no derivative. `chunk` bounds how many
sites are computed at once: B chunk N (d + 2) floats of workspace.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.attractor.couplings import SpinCouplings


def check_inputs(
    couplings: SpinCouplings,
    x: Tensor,
    strength: float,
    clamp: float | None = None,
    chunk: int | None = None,
    inertia: float = 0.0,
) -> None:
    """Errors that say what was expected: finite spins of these couplings, finite numbers, at least one site at once."""
    checks.instance("couplings", couplings, SpinCouplings)
    couplings.check_spins(x)
    for name, value in (("strength", strength), ("inertia", inertia), ("clamp", clamp)):
        if name != "clamp" or value is not None:
            checks.finite_number(name, value)
    if chunk is not None:
        checks.at_least("chunk", chunk, 1)


def chunks(sites: range, chunk: int | None) -> Iterator[slice]:
    """`sites` in slices of at most `chunk`."""
    size = chunk or max(1, len(sites))
    for start in range(sites.start, sites.stop, size):
        yield slice(start, min(start + size, sites.stop))


def scores(couplings: SpinCouplings, x: Tensor, sites: slice, strength: float = 1.0) -> Tensor:
    """λ x_i J_ij x_j of the sites i: (S, B, N), minus infinity where i = j."""
    raw = couplings.scores(x[:, sites] * strength, x, sites)
    columns = torch.arange(x.shape[1], device=x.device)
    diagonal = (columns[sites, None] == columns)[:, None]
    if torch.is_grad_enabled():
        return raw.masked_fill(diagonal, float("-inf"))
    return raw.masked_fill_(diagonal, float("-inf"))


def local_energy(
    couplings: SpinCouplings, x: Tensor, *, strength: float = 1.0, clamp: float | None = None, chunk: int | None = None
) -> Tensor:
    """e_i of every site: (B, N)."""
    check_inputs(couplings, x, strength, clamp, chunk)
    parts = []
    for sites in chunks(range(x.shape[1]), chunk):
        s = scores(couplings, x, sites, strength)
        parts.append(-torch.logsumexp(s if clamp is None else s.clamp(max=clamp), dim=-1))  # (S, B)  ATT Eq. 4
    return torch.cat(parts).T


def attention(couplings: SpinCouplings, x: Tensor, *, strength: float = 1.0, clamp: float | None = None) -> Tensor:
    """α_ij, row i over all j: (B, N, N)."""
    check_inputs(couplings, x, strength, clamp)
    s = scores(couplings, x, slice(None), strength)
    return torch.softmax(s if clamp is None else s.clamp(max=clamp), dim=-1).transpose(0, 1)  # ATT Eq. 2


def energy_and_attention(s: Tensor, clamp: float | None) -> tuple[Tensor, Tensor]:
    """e_i (S, B) and -∂e_i/∂s_ij (S, B, N) from scores s: the latter is α_ij, 0 for clamped pairs."""
    bounded = s if clamp is None else s.clamp(max=clamp)
    free = torch.logsumexp(bounded, dim=-1, keepdim=True)
    alpha = torch.exp(bounded - free)
    return -free[..., 0], alpha if clamp is None else alpha * (s <= clamp)


def step(
    couplings: SpinCouplings,
    x: Tensor,
    *,
    strength: float = 1.0,
    inertia: float = 1.0,
    clamp: float | None = None,
    chunk: int | None = None,
) -> Tensor:
    """x_i' = -∂e_i/∂x_i + γ x_i for every site: (B, N, d)."""
    check_inputs(couplings, x, strength, clamp, chunk, inertia)
    return moved(couplings, x, strength, inertia, clamp, chunk)


def moved(
    couplings: SpinCouplings, x: Tensor, strength: float, inertia: float, clamp: float | None, chunk: int | None
) -> Tensor:
    """`step` of what was checked before."""
    parts = []
    for sites in chunks(range(x.shape[1]), chunk):
        _, alpha = energy_and_attention(scores(couplings, x, sites, strength), clamp)
        parts.append(torch.add(inertia * x[:, sites], couplings.pull(alpha, x, sites), alpha=strength))  # ATT Eq. 1
    return torch.cat(parts, dim=1)
