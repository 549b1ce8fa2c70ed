"""Implicit against unrolled gradients of the mean field, and how the memory of both grows with the steps."""

from itertools import product
from typing import Any

import torch
from torch import Tensor

from research.benchmarks.timing import peak_memory, run_alone
from spinformer.ising import DenseCouplings, Ising, LowRankCouplings, mean_field
from spinformer.ising.mean_field import Backward, Correction

BATCH, SPINS, RANK, TOLERANCE = 8, 40, 6, 1e-4
STEPS = (20, 80)
CORRECTIONS: tuple[Correction, ...] = ("naive", "tap")
BACKWARDS: tuple[Backward, ...] = ("implicit", "unrolled")


def run(seed: int = 0) -> dict[str, Any]:
    """Relative difference of the gradients at convergence, and growth of memory from STEPS[0] to STEPS[1]."""
    jobs = product(("dense", "low rank"), CORRECTIONS)
    differences = {f"{kind}, {correction}": _difference(kind, correction, seed) for kind, correction in jobs}
    measured = {
        backward: [run_alone(f"research.benchmarks.gradients:measure({steps}, {backward!r})") for steps in STEPS]
        for backward in BACKWARDS
    }
    worst = max(differences.values())
    saved = {name: [size["saved"] for size in sizes] for name, sizes in measured.items()}
    growth = {name: (sizes[1] - sizes[0]) / sizes[0] for name, sizes in saved.items()}
    return {
        "differences": differences,
        "worst": worst,
        "steps": STEPS,
        "saved_bytes": saved,
        "peak_bytes": {name: [size["peak"] for size in sizes] for name, sizes in measured.items()},
        "growth": growth,
        "passed": worst <= TOLERANCE and growth["implicit"] == 0 and growth["unrolled"] > 1,
    }


def measure(steps: int, backward: Backward) -> dict[str, float]:
    """Bytes saved for the backward pass and the peak of the process, with exactly this many steps of 2^20 spins."""
    torch.manual_seed(0)
    spins = 2**20
    fields = torch.randn(1, spins, requires_grad=True)
    factors = torch.randn(1, spins, 4) / spins**0.5
    couplings = LowRankCouplings(factors, torch.full((1, 4), 0.5))
    before = peak_memory()
    sizes: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        sizes.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        ising = Ising(fields, couplings, 1.0)
        # damping so strong that the iteration never converges early
        solved = mean_field(ising, max_steps=steps, damping=0.05, tol=1e-30, backward=backward)
    solved.magnetization.sum().backward()
    return {"saved": sum(sizes), "peak": peak_memory() - before}


def _difference(kind: str, correction: Correction, seed: int) -> float:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    fields = normal(BATCH, SPINS)
    matrix = normal(BATCH, SPINS, SPINS) * 0.3 / SPINS**0.5
    parts = [matrix + matrix.mT] if kind == "dense" else [normal(BATCH, SPINS, RANK) / SPINS**0.5, normal(BATCH, RANK)]
    inputs = [fields, *parts]
    weight = normal(BATCH, SPINS)
    gradients = []
    for backward in BACKWARDS:
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        couplings = DenseCouplings(leaves[1]) if kind == "dense" else LowRankCouplings(leaves[1], leaves[2])
        solved = mean_field(
            Ising(leaves[0], couplings, 1.0),
            max_steps=500,
            tol=1e-10,
            correction=correction,
            backward=backward,
        )
        gradients.append(torch.autograd.grad((solved.magnetization * weight).sum(), leaves))
    return max(float((a - b).norm() / b.norm()) for a, b in zip(*gradients, strict=True))
