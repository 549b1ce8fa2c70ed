"""Coverage: how often the 95% interval of an estimate contains the exact value.

Norm games of 12 players, with v of the grand coalition set to a strength of 1 or 4: at temperature 0.25 the Gibbs
log-weights then span 4 times that. The vectors share a common direction, as an encoder's do (aligned), or point
anywhere (isotropic). Every value of every estimate counts as one case. Estimates fall into three bands by their mean
effective sample size: judged, at least 100; trusted, at least MIN_ESS; and distrusted, where the estimate itself warns
that its standard error is unreliable.
"""

from itertools import product
from typing import Any

import torch
from torch import Tensor

from spinformer._base.progress import progress
from spinformer.games import (
    MIN_ESS,
    EstimatorName,
    NormGame,
    ProposalName,
    Weighting,
    estimate_values,
    exact_values,
)
from spinformer.games.indices import INDICES

PLAYERS, DIM, BUDGET, TEMPERATURE = 12, 16, 400, 0.25
GAMES, REPEATS = 10, 50  # of each family and strength
FAMILIES = ("aligned", "isotropic")
STRENGTHS = (1.0, 4.0)
LEAST_ESS, LOW, HIGH = 100.0, 0.93, 0.97
METHODS: tuple[tuple[Weighting, ProposalName, EstimatorName], ...] = (
    ("uniform", "uniform", "plain"),
    ("uniform", "uniform", "paired"),
    ("uniform", "uniform", "control"),
    ("gibbs", "uniform", "plain"),
    ("gibbs", "uniform", "paired"),
    ("gibbs", "tilted", "plain"),
    ("gibbs", "tilted", "paired"),
)


def games(generator: torch.Generator) -> Tensor:
    """Vectors of all families and strengths, scaled to v(all) = strength: (4 GAMES, PLAYERS, DIM)."""
    parts = []
    for family, strength in product(FAMILIES, STRENGTHS):
        common = torch.randn(GAMES, 1, DIM, generator=generator) * (family == "aligned")
        values = common + torch.randn(GAMES, PLAYERS, DIM, generator=generator)
        parts.append(values * (strength / values.sum(1, keepdim=True).norm(dim=-1, keepdim=True)))
    return torch.cat(parts)


def run(seed: int = 0) -> dict[str, Any]:
    """One row for each index, weighting, proposal and estimator."""
    generator = torch.Generator().manual_seed(seed)
    values = games(generator)
    jobs = list(product(INDICES, METHODS))
    rows = [_row(values, index, *method, generator) for index, method in progress(jobs, "coverage")]
    judged = [row["judged"]["coverage"] for row in rows if row["judged"]["estimates"]]
    return {
        "rows": rows,
        "estimates": len(values) * REPEATS,
        "min_ess": MIN_ESS,
        "lowest": min(judged),
        "highest": max(judged),
        "passed": all(LOW <= coverage <= HIGH for coverage in judged),
    }


def _row(
    values: Tensor,
    index: str,
    weighting: Weighting,
    proposal: ProposalName,
    estimator: EstimatorName,
    generator: torch.Generator,
) -> dict[str, Any]:
    exact = exact_values(NormGame(values.double()), index, weighting, TEMPERATURE)
    keep = torch.ones(exact.shape[1:], dtype=torch.bool)
    if exact.dim() == 3:
        keep = keep.triu(1)
    inside, ess = [], []
    for _ in range(REPEATS):
        estimate = estimate_values(
            NormGame(values),
            index,
            BUDGET,
            weighting=weighting,
            temperature=TEMPERATURE,
            proposal=proposal,
            estimator=estimator,
            generator=generator,
        )
        low, high = estimate.interval()
        inside.append(((low <= exact) & (exact <= high))[:, keep].double().mean(-1))
        ess.append(estimate.ess[:, keep].mean(-1))
    covered, size = torch.cat(inside), torch.cat(ess)
    bands = {
        "judged": size >= LEAST_ESS,
        "trusted": (size >= MIN_ESS) & (size < LEAST_ESS),
        "distrusted": size < MIN_ESS,
    }
    shares = {
        name: {"estimates": int(band.sum()), "coverage": covered[band].mean().item() if band.any() else None}
        for name, band in bands.items()
    }
    return {"index": index, "weighting": weighting, "proposal": proposal, "estimator": estimator, **shares}
