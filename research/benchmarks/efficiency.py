"""Sample efficiency: our best estimator at K = 25 against the paper's at K = 250, on real encoder outputs.

The truth is enumerated, so the pairs have at most 14 tokens. "Paper" is the estimator of Algorithm 1 with fresh
coalitions for every token and pair (drawn here by independent games in a batch, which has the same distribution). For
the Gibbs target it is as printed. For the uniform target its weights are equal, since with Gibbs weights it does not
estimate that target at all; that error is shown too. Everything is in float64. An error below ROUNDING times the size
of the values counts as none: the Gibbs target of so cold a game is almost a single coalition, and once it is drawn the
value is known.
"""

from itertools import product
from typing import Any

import torch
from torch import Tensor

from research.data import encoder_sample
from spinformer._base.progress import progress
from spinformer.games import NormGame, Weighting, estimate_values, exact_values

TEMPERATURE, OURS, PAPERS, REPEATS, MOST = 0.25, 25, 250, 20, 14
TARGETS: tuple[Weighting, ...] = ("uniform", "gibbs")
INDICES: tuple[str, ...] = ("SV", "BV", "BII")
ROUNDING = 1e-9


def run(seed: int = 0) -> dict[str, Any]:
    """Root mean square error of each, over pairs, players and repetitions, for SV, BV and BII."""
    generator = torch.Generator().manual_seed(seed)
    inputs = [values.double() for values in encoder_sample().short(MOST)]
    rows: list[dict[str, Any]] = []
    jobs = list(product(TARGETS, INDICES))
    for target, index in progress(jobs, "sample efficiency"):
        sums = dict.fromkeys(("ours", "paper", "paper_gibbs", "size"), 0.0)
        count = 0
        for values in inputs:
            exact = exact_values(NormGame(values), index, target, TEMPERATURE)
            keep = torch.ones_like(exact, dtype=torch.bool)
            if exact.dim() == 2:  # pairs
                keep = keep.triu(1)
            errors = {
                "ours": _ours(values, index, target, generator) - exact,
                "paper": _papers(values, index, target, generator) - exact,
                "paper_gibbs": _papers(values, index, "gibbs", generator) - exact,
                "size": exact.expand(REPEATS, *exact.shape),
            }
            for name, error in errors.items():
                sums[name] += float(error[:, keep].double().square().sum())
            count += REPEATS * int(keep.sum())
        size = {name: (total / count) ** 0.5 for name, total in sums.items()}
        rows.append({"target": target, "index": index, **size, "ratio": size["ours"] / size["paper"]})
    return {
        "inputs": len(inputs),
        "ours_budget": OURS,
        "paper_budget": PAPERS,
        "rows": rows,
        "passed": all(row["ratio"] <= 1 or row["ours"] <= ROUNDING * row["size"] for row in rows),
    }


def _ours(values: Tensor, index: str, target: Weighting, generator: torch.Generator) -> Tensor:
    game = NormGame(values.expand(REPEATS, -1, -1))
    return estimate_values(
        game,
        index,
        OURS,
        weighting=target,
        temperature=TEMPERATURE,
        proposal="uniform" if target == "uniform" else "tilted",
        generator=generator,
    ).values


def _papers(values: Tensor, index: str, target: Weighting, generator: torch.Generator) -> Tensor:
    """Independent coalitions for every player (or row of pairs): one game of the batch gives one of them."""
    n = len(values)
    rows = []
    for _ in range(REPEATS):
        game = NormGame(values.expand(n, -1, -1))
        estimate = estimate_values(
            game,
            index,
            PAPERS,
            weighting=target,
            temperature=TEMPERATURE,
            estimator="plain",
            generator=generator,
        ).values
        rows.append(estimate.diagonal(dim1=0, dim2=1) if estimate.dim() == 2 else estimate.diagonal(dim1=0, dim2=1).mT)
    return torch.stack(rows)
