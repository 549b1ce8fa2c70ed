"""Speed and memory of training the attractor: closed-form gradients against autograd through einsum.

Both take the same step: gradient of all sites, clipping for each site, fused Adam, J_ii = 0, the norm of each site
held. Full couplings, 2 x 2 patches of 28 x 28 images (N = 196, d = 8), batch 32.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from research.benchmarks.timing import peak_memory, run_alone
from spinformer.attractor import FullCouplings, reference, unit
from spinformer.data.images import Images
from spinformer.models.attractor import AttractorNetwork
from spinformer.training.attractor.presets import preset
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe, Stepper
from spinformer.training.attractor.train import train_attractor

N, D, BATCH = 196, 8, 32
RECIPE = AttractorRecipe(batch=BATCH, optimiser="adam", rate=1e-3, decay="constant", clip=1.0)  # of both kinds of step
CHUNKS = {"cpu": 28, "cuda": 66}
# cuBLAS reserves tens of MiB on each stream. A smaller workspace, for both kinds of step, shows what they allocate.
WORKSPACE = ":16:8"


def closed_step(device: str, *, chunk: int | None = None, graph: bool = True) -> Callable[[Tensor], Tensor]:
    """The library's training step."""
    couplings = FullCouplings(N, D, generator=torch.Generator().manual_seed(0)).to(device)
    recipe = replace(RECIPE, chunk=chunk or CHUNKS[torch.device(device).type])
    return Stepper(couplings, recipe, 1_000_000, graph=graph).step


def autograd_step(device: str) -> Callable[[Tensor], Tensor]:
    """The same step, written with autograd and einsum."""
    recipe = RECIPE
    start = FullCouplings(N, D, generator=torch.Generator().manual_seed(0)).dense().detach()
    J = start.clone(memory_format=torch.contiguous_format).to(device).requires_grad_()
    optimiser = torch.optim.Adam([J], lr=recipe.rate, eps=1e-12, fused=True)
    norms = J.detach().flatten(1).norm(dim=1)[:, None, None, None]
    sites = torch.arange(N, device=device)

    def step(x: Tensor) -> Tensor:
        optimiser.zero_grad(set_to_none=True)
        loss = reference.energy(J, x, recipe.strength).mean()
        loss.backward()
        with torch.no_grad():
            assert J.grad is not None
            assert recipe.clip is not None
            length = J.grad.flatten(1).norm(dim=1)[:, None, None, None]
            J.grad.mul_((recipe.clip / length.clamp(min=1e-30)).clamp(max=1))
            optimiser.step()
            J[sites, sites] = 0
            J.mul_(norms / J.flatten(1).norm(dim=1)[:, None, None, None])
        return loss.detach() / N

    return step


STEPS: dict[str, Callable[[str], Callable[[Tensor], Tensor]]] = {
    "closed": closed_step,
    "autograd": autograd_step,
}


def run(seed: int = 0) -> dict[str, Any]:
    """Both steps on the GPU, if there is one, else on the CPU; `seed` changes nothing here."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    outcome = run_speed(device)
    min_speedup = {"cpu": 3, "cuda": 5}[device]
    return {**outcome, "passed": outcome["speedup"] >= min_speedup and outcome["memory_ratio"] <= 0.5}


def run_speed(device: str = "cpu", *, repeats: int = 5, steps: int = 20) -> dict[str, Any]:
    """Milliseconds a step and peak memory of both kinds, in turns, each run in a process of its own."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in STEPS}
    for _ in range(repeats):
        for name in runs:
            call = f"research.benchmarks.attractor_speed:measure({name!r}, {device!r}, {steps})"
            runs[name].append(run_alone(call, {"CUBLAS_WORKSPACE_CONFIG": WORKSPACE}))
    outcome: dict[str, Any] = {
        "device": device,
        "repeats": repeats,
        "steps": steps,
        "chunk": CHUNKS[torch.device(device).type],
    }
    for name, results in runs.items():
        outcome[name] = {
            "ms": statistics.median(result["ms"] for result in results),
            "ms_all": [result["ms"] for result in results],
            "peak_mib": statistics.median(result["peak_mib"] for result in results),
            "loss": results[0]["loss"],
        }
    closed, autograd = outcome["closed"], outcome["autograd"]
    outcome["speedup"] = autograd["ms"] / closed["ms"]
    outcome["memory_ratio"] = closed["peak_mib"] / autograd["peak_mib"]
    outcome["loss_difference"] = abs(closed["loss"] - autograd["loss"]) / abs(autograd["loss"])
    return outcome


def run_training(images: Images, device: str = "cpu", *, epochs: int = 20, count: int = 50000) -> dict[str, Any]:
    """Seconds of the paper's training, from images in memory to couplings."""
    config, recipe = preset("paper", patch=2, image=images.shape)
    network = AttractorNetwork(config).to(device)
    pixels = images.cut(min(count, len(images.train))).train.to(device)
    recipe = replace(recipe, epochs=epochs, chunk=CHUNKS[torch.device(device).type])
    _wait(device)
    start = time.perf_counter()
    history = train_attractor(network, pixels, recipe)
    _wait(device)
    return {
        "device": device,
        "images": len(pixels),
        "epochs": epochs,
        "batch": recipe.batch,
        "seconds": time.perf_counter() - start,
        "energy": [record["loss"] for record in history],
    }


def measure(name: str, device: str, steps: int) -> dict[str, float]:
    """Measure one kind of step in this process."""
    x = unit(torch.randn(64, BATCH, N, D, generator=torch.Generator().manual_seed(1)).to(device))
    warm = 5
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    else:
        before = _resident()
    step = STEPS[name](device)
    for k in range(warm):
        loss = step(x[k])
    _wait(device)
    start = time.perf_counter()
    for k in range(steps):
        loss = step(x[(warm + k) % len(x)])
    _wait(device)
    ms = (time.perf_counter() - start) / steps * 1e3
    peak = torch.cuda.max_memory_allocated() if device.startswith("cuda") else peak_memory()
    return {"ms": ms, "peak_mib": (peak - before) / 2**20, "loss": loss.item()}


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
