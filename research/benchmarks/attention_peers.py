"""shapiq's and captum's estimators of the Shapley values that the layer estimates, at the same number of evaluations.

The game of one sequence, v(C) = |sum over C of v_i|, on the CPU. K coalitions of n tokens, each toggled, are K n
evaluations; the estimators get as many. Libraries that are not installed are left out.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from research.benchmarks.timing import seconds
from spinformer._base.rng import preserved
from spinformer.games import NormGame, estimate_values


def peers(tokens: int, dim: int, budget: int, seed: int) -> list[dict[str, Any]]:
    """Seconds of each estimator, and of ours, for one sequence of standard normal vectors."""
    values = torch.randn(tokens, dim, generator=torch.Generator().manual_seed(seed))
    game = NormGame(values[None])
    ways: dict[str, Callable[[], Any]] = {
        "spinformer": lambda: estimate_values(game, "SV", budget, seed=seed),
    }
    if find_spec("shapiq"):
        ways["shapiq KernelSHAP"] = lambda: _shapiq(values, budget * tokens, seed)
    if find_spec("captum"):
        ways["captum ShapleyValueSampling"] = lambda: _captum(values, budget, seed)
    rows = []
    for name, way in ways.items():
        with preserved():
            taken = seconds(way, 1)
        rows.append({"name": name, "tokens": tokens, "evaluations": budget * tokens, "seconds": taken})
    return rows


def norms(values: Tensor, coalitions: Tensor) -> Tensor:
    """v of each row."""
    return (coalitions.to(values) @ values).norm(dim=-1)


def _shapiq(values: Tensor, evaluations: int, seed: int) -> Any:
    import shapiq

    estimator = shapiq.KernelSHAP(n=len(values), random_state=seed)
    return estimator.approximate(evaluations, lambda rows: norms(values, torch.from_numpy(np.asarray(rows))).numpy())


def _captum(values: Tensor, permutations: int, seed: int) -> Any:
    from captum.attr import ShapleyValueSampling

    torch.manual_seed(seed)
    sampling = ShapleyValueSampling(lambda rows: norms(values, rows))
    whole = torch.ones(1, len(values))
    return sampling.attribute(whole, n_samples=permutations, perturbations_per_eval=128)
