"""Linear couplings: how time and memory grow with n, and how much they differ from dense ones.

B = 1, d = 256, K = 25. Each size runs in several processes, and the median counts. Within a process, time is the
fastest of several passes, which other work on the machine disturbs least; memory is the growth of the peak since before
the first pass. The short input fits into the processor's cache and the long one does not, so even strictly linear work
grows by more than the ratio of the lengths, 8.

Tensors of the long input are so large that the C library returns their memory to the system each time and gets it back
in small pages, which takes much of the time of both passes. So each pass is also measured with torch's setting for huge
pages, THP_MEM_ALLOC_ENABLE=1, which avoids most of it. The limits hold for all of them.
"""

from itertools import product
from statistics import median
from typing import Any

import torch
from torch import Tensor

from research.benchmarks.timing import peak_memory, run_alone, seconds
from research.data import encoder_sample
from spinformer._base.progress import progress
from spinformer.attention import NeuroGameAttention

DIM, BUDGET, REPEATS, PROCESSES = 256, 25, 9, 5
SHORT, LONG, COMPARED = 8_192, 65_536, 512
MOST_TIME, MOST_MEMORY, MOST_ATTENTION, MOST_COUPLINGS = 10.0, 9.0, 0.01, 0.03
PASSES = ("forward", "forward and backward")
PAGES = {"": {}, ", huge pages": {"THP_MEM_ALLOC_ENABLE": "1"}}


def run(seed: int = 0) -> dict[str, Any]:
    """Growth from SHORT to LONG for each pass, and differences from the dense form at COMPARED tokens."""
    growth: dict[str, dict[str, Any]] = {}
    for name, pages in progress(list(product(PASSES, PAGES)), "linear growth"):
        sizes = [_median(n, name, seed, PAGES[pages]) for n in (SHORT, LONG)]
        growth[name + pages] = {
            "seconds": [size["seconds"] for size in sizes],
            "bytes": [size["bytes"] for size in sizes],
            "time": sizes[1]["seconds"] / sizes[0]["seconds"],
            "memory": sizes[1]["bytes"] / sizes[0]["bytes"],
        }
    differences = {name: _difference(x, seed) for name, x in _inputs(seed).items()}
    return {
        "growth": growth,
        "differences": differences,
        "passed": all(g["time"] <= MOST_TIME and g["memory"] <= MOST_MEMORY for g in growth.values())
        and all(
            d["attention"] <= MOST_ATTENTION and max(d["couplings"], d["interactions"]) <= MOST_COUPLINGS
            for d in differences.values()
        ),
    }


def _median(n: int, name: str, seed: int, environment: dict[str, str]) -> dict[str, float]:
    call = f"research.benchmarks.linear:measure({n}, {name!r}, {seed})"
    runs = [run_alone(call, environment) for _ in range(PROCESSES)]
    return {key: median(run[key] for run in runs) for key in runs[0]}


def measure(n: int, name: str, seed: int) -> dict[str, float]:
    """Seconds and bytes of one pass over n tokens."""
    torch.manual_seed(seed)
    layer = NeuroGameAttention(DIM, eval_samples=BUDGET).eval()
    x = torch.randn(1, n, DIM) + torch.randn(DIM)
    before = peak_memory()

    def forward() -> None:
        with torch.no_grad():
            layer(x)

    def both() -> None:
        layer.zero_grad()
        layer(x).pooled.sum().backward()

    fastest = seconds(forward if name == "forward" else both, repeats=REPEATS, pick=min)
    return {"seconds": fastest, "bytes": peak_memory() - before}


def _inputs(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sample = encoder_sample()
    noise = torch.randn(1, COMPARED, DIM, generator=generator)
    return {
        "encoder outputs": sample.hidden[sample.mask][None, :COMPARED],
        "random, aligned": noise + torch.randn(DIM, generator=generator),
        "random, isotropic": noise,
    }


@torch.no_grad()
def _difference(x: Tensor, seed: int) -> dict[str, float]:
    torch.manual_seed(seed)
    dense = NeuroGameAttention(x.shape[-1], eval_samples=BUDGET, couplings="dense").eval()
    linear = NeuroGameAttention(x.shape[-1], eval_samples=BUDGET, couplings="linear").eval()
    linear.load_state_dict(dense.state_dict())
    one, other = dense(x), linear(x)
    return {
        "attention": (one.attention - other.attention).abs().max().item(),
        "couplings": _relative(other.couplings.dense(), one.couplings.dense()),
        "interactions": _relative(other.interactions.dense(), one.interactions.dense()),
    }


def _relative(other: Tensor, reference: Tensor) -> float:
    return ((other - reference).norm() / reference.norm()).item()
