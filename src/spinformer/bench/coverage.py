"""Coverage: how often the 95% interval of an estimate holds the exact value.

Norm games of 12 players, with v of the grand coalition set to `strength`: at temperature 0.25 the Gibbs log-weights
then span 4 * strength. The vectors share a common direction, as an encoder's do (`aligned`), or point anywhere
(`isotropic`). Every value of every estimate counts as one case; a row whose mean effective sample size is below 100
is reported but not judged.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor

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
from spinformer.progress import progress

PLAYERS, DIM, BUDGET, TEMPERATURE = 12, 16, 400, 0.25
GAMES, REPEATS = 40, 50
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


def games(family: str, strength: float, generator: torch.Generator) -> Tensor:
    """Vectors (GAMES, PLAYERS, DIM) of the family, scaled to v(all) = strength."""
    common = torch.randn(GAMES, 1, DIM, generator=generator) * (family == "aligned")
    values = common + torch.randn(GAMES, PLAYERS, DIM, generator=generator)
    return values * (strength / values.sum(1, keepdim=True).norm(dim=-1, keepdim=True))


def run(seed: int = 0) -> dict[str, Any]:
    """One row for each index, weighting, proposal, estimator and strength."""
    rows = list(_rows(seed))
    judged = [row for row in rows if row["ess"] >= LEAST_ESS]
    return {
        "rows": rows,
        "estimates": GAMES * REPEATS,
        "min_ess": MIN_ESS,
        "judged": len(judged),
        "lowest": min(row["coverage"] for row in judged),
        "highest": max(row["coverage"] for row in judged),
        "passed": all(LOW <= row["coverage"] <= HIGH for row in judged),
    }


def _rows(seed: int) -> Iterator[dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    kinds = list(product(FAMILIES, STRENGTHS))
    vectors = {kind: games(*kind, generator) for kind in kinds}
    jobs = list(product(kinds, INDICES, METHODS))
    for kind, index, (weighting, proposal, estimator) in progress(jobs, "coverage"):
        values = vectors[kind]
        exact = exact_values(NormGame(values.double()), index, weighting, TEMPERATURE)
        inside, cases, ess = 0, 0, 0.0
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
            keep = torch.ones_like(exact, dtype=torch.bool)
            if exact.dim() == 3:
                keep = keep.triu(1)
            inside += int(((low <= exact) & (exact <= high))[keep].sum())
            cases += int(keep.sum())
            ess += float(estimate.ess[keep].mean()) / REPEATS
        yield {
            "family": kind[0],
            "strength": kind[1],
            "index": index,
            "weighting": weighting,
            "proposal": proposal,
            "estimator": estimator,
            "coverage": inside / cases,
            "ess": ess,
        }
