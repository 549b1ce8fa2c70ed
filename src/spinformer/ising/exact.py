"""Exact thermodynamics by enumeration of every spin configuration, and a sampler for larger systems."""

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.precision import full_precision
from spinformer._base.rng import check_generator
from spinformer.ising.model import Ising

MAX_SPINS = 20
# Configurations enumerated at once.
CHUNK = 2**12


def exact_magnetization(ising: Ising) -> Tensor:
    """<s_i> = sum over s of s_i exp(-H(s) / temperature) / Z, (B, n); 0 for padding         NGT Eq. 15"""
    return _enumerate(ising)[1]


def log_partition(ising: Ising) -> Tensor:
    """log Z = log sum over s of exp(-H(s) / temperature), (B,); padding is not summed over    NGT Eq. 15"""
    return _enumerate(ising)[0]


def free_energy(ising: Ising) -> Tensor:
    """F = -temperature log Z, (B,)."""
    return -log_partition(ising) * ising.temperature


@full_precision
def _enumerate(ising: Ising) -> tuple[Tensor, Tensor]:
    """log Z and the magnetisation, in one pass over 2**n states; sums in float64, O(n^2 2^n) time."""
    checks.instance("ising", ising, Ising)
    mask = ising.mask if ising.mask is not None else torch.ones_like(ising.fields, dtype=torch.bool)
    columns = mask.any(0).nonzero().flatten()
    n = len(columns)
    if n > MAX_SPINS:
        raise ValueError(f"exact sums run over 2**n states and take at most {MAX_SPINS} spins; got {n}; use mean_field")
    inside = mask[:, columns].double()
    fields = ising.fields[:, columns].double() * inside
    matrix = ising.couplings.dense()[:, columns[:, None], columns].double()
    bits = torch.arange(n, device=fields.device)
    logs, means = [], []
    for start in range(0, 2**n, CHUNK):
        position = torch.arange(start, min(start + CHUNK, 2**n), device=fields.device)
        spins = (2 * (position[:, None] >> bits & 1) - 1).double() * inside[:, None]  # (B, S, n); padding is 0
        energy = -(spins * (fields[:, None] + spins @ matrix / 2)).sum(-1)  # NGT Eq. 10
        log_weight = -energy / ising.temperature.double()[:, None]
        logs.append(log_weight.logsumexp(-1))
        means.append((log_weight.softmax(-1)[..., None] * spins).sum(1))
    log_parts = torch.stack(logs, -1)  # (B, chunks)
    mean = (log_parts.softmax(-1)[..., None] * torch.stack(means, 1)).sum(1)
    magnetization = torch.zeros_like(ising.fields)
    magnetization[:, columns] = mean.to(magnetization.dtype)
    doubled = (n - inside.sum(-1)) * torch.log(torch.tensor(2.0, dtype=torch.float64))  # padding was counted twice
    return (log_parts.logsumexp(-1) - doubled).to(ising.fields.dtype), magnetization


@full_precision
@torch.no_grad()
def glauber(
    ising: Ising,
    sweeps: int,
    *,
    chains: int = 64,
    burn_in: int = 100,
    generator: torch.Generator | None = None,
) -> Tensor:
    """P(s_i = +1 | others) = sigmoid(2 h_i^eff / temperature), one spin after the other        NGT Eq. 20

    Spins (B, chains, sweeps, n) in {-1, +1} (0 for padding), one state per sweep after `burn_in` sweeps, from a random
    start. Uses the dense couplings: O(B chains n^2) per sweep.
    """
    checks.instance("ising", ising, Ising)
    check_generator(generator)
    checks.at_least("sweeps", sweeps, 1)
    checks.at_least("chains", chains, 1)
    checks.at_least("burn_in", burn_in, 0)
    device = generator.device if generator is not None else ising.fields.device

    def coins(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device=device).to(ising.fields)

    matrix = ising.couplings.dense()
    inside = torch.ones_like(ising.fields) if ising.mask is None else ising.mask.to(ising.fields)
    spins = torch.where(coins(ising.batch, chains, ising.spins) < 0.5, 1.0, -1.0).to(ising.fields) * inside[:, None]
    inverse = 2 / ising.temperature[:, None]
    samples = []
    for sweep in range(burn_in + sweeps):
        numbers = coins(ising.spins, ising.batch, chains)
        for i in range(ising.spins):
            field = ising.fields[:, None, i] + (spins @ matrix[:, i, :, None]).squeeze(-1)  # (B, chains)
            up = numbers[i] < torch.sigmoid(inverse * field)
            spins[:, :, i] = torch.where(up, 1.0, -1.0).to(spins) * inside[:, None, i]
        if sweep >= burn_in:
            samples.append(spins.clone())
    return torch.stack(samples, 2)
