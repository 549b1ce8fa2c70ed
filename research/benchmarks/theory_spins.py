"""What the NeuroGame paper says of spins and of the mean field in section 3, measured."""

from typing import Any

import torch
from torch import Tensor

from research.data import encoder_sample
from spinformer.attention import NeuroGameAttention
from spinformer.ising import Ising, exact_magnetization, mean_field

SPINS, SYSTEMS = 8, 100
COLD, HOT = 1e-6, 1e6
STEPS = 20  # "typically within 10-20 iterations"
SEQUENCE, ITERATIONS = 512, 20  # Table 1
# Options of the paper's layer: as Algorithm 1 has it, without damping, and as section 7.3 has it.
SOLVERS = {"algorithm 1": {"damping": 1.0}, "section 7.3": {}}


def random_system(temperature: float, strength: float = 1.0) -> Ising:
    """SYSTEMS models of SPINS spins: normal fields, normal couplings over the root of n."""
    generator = torch.Generator().manual_seed(0)
    fields = torch.randn(SYSTEMS, SPINS, generator=generator, dtype=torch.float64)
    upper = torch.randn(SYSTEMS, SPINS, SPINS, generator=generator, dtype=torch.float64).triu(1) / SPINS**0.5
    return Ising(fields, strength * (upper + upper.mT), temperature)


def theorem() -> dict[str, float]:
    """NGT Theorem 1: how far exact expected spins are from solving NGT Eq. 16, at most, with and without couplings.

    distance: the largest difference between mean field and exact expected spins, where the mean field converged.
    """
    residuals = {}
    for name, strength in (("no couplings", 0.0), ("couplings", 1.0)):
        ising = random_system(1.0, strength)
        exact = exact_magnetization(ising)
        residuals[name] = float((ising.update(exact) - exact).abs().max())
    solved = mean_field(ising, max_steps=500, tol=1e-10)
    apart = (solved.magnetization - exact).abs().amax(-1)[solved.converged]
    return {**residuals, "distance": float(apart.max())}


def temperatures() -> dict[str, float]:
    """Section 3.9: the largest distance of exact attention from 0 or 1 in the cold, and from 1/2 in the heat."""
    cold, hot = (((1 + exact_magnetization(random_system(gamma))) / 2) for gamma in (COLD, HOT))
    return {"cold": float(torch.minimum(cold, 1 - cold).max()), "hot": float((hot - 0.5).abs().max())}


def independence() -> dict[str, float]:
    """Definition 8: the correlation of two spins without a coupling, which share a third, and without one."""
    shared = torch.zeros(1, 3, 3, dtype=torch.float64)
    shared[0, 0, 2] = shared[0, 2, 0] = shared[0, 1, 2] = shared[0, 2, 1] = 1.0
    return {"through a third": _correlation(shared), "alone": _correlation(torch.zeros_like(shared))}


def _correlation(couplings: Tensor) -> float:
    """Of the first two spins, without fields: <s_1 s_2>, by enumeration."""
    states = 2 * (torch.arange(8)[:, None] >> torch.arange(3) & 1).double() - 1
    weights = (-Ising(torch.zeros(1, 3, dtype=torch.float64), couplings, 1.0).energy(states[None])[0]).softmax(0)
    return float((weights * states[:, 0] * states[:, 1]).sum())


def layer() -> dict[str, Any]:
    """The paper's layer on 64 pairs of hidden states, untrained: signs of its fields, sums of attention, convergence.

    within: the share of sequences whose iteration comes to rest, to 1e-4, within STEPS steps.
    """
    sample = encoder_sample()
    outcome: dict[str, Any] = {"within": {}}
    for name, options in SOLVERS.items():
        torch.manual_seed(0)
        width = sample.hidden.shape[-1]
        paper = NeuroGameAttention(width, preset="paper", max_steps=STEPS, **options).eval()  # type: ignore[arg-type]
        with torch.no_grad():
            out = paper(sample.hidden, sample.mask)
        outcome["within"][name] = float(out.diagnostics.converged.double().mean())
    inside = sample.mask[:, None]
    outcome["negative_fields"] = float((out.fields[inside] < 0).double().mean())
    outcome["attention_sum"] = float(out.attention.sum(-1).mean())
    outcome["tokens"] = float(sample.mask.sum(-1).double().mean())
    outcome["steps"] = STEPS
    return outcome


def table_1() -> dict[str, float]:
    """Operations for 512 tokens: n^2 T, and the power of ten of 2^n."""
    return {"mean_field": SEQUENCE**2 * ITERATIONS, "exact_power_of_ten": len(str(2**SEQUENCE)) - 1}
