"""What the tilted proposal costs: seconds of one estimate under Gibbs weights against those with the uniform one.

Both draw the same number of coalitions of the same games in one run; the effective sample size says what the draws are
worth.
"""

from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from research.benchmarks.timing import seconds
from spinformer._base.progress import progress
from spinformer.games import Estimate, NormGame, ProposalName, estimate_values

TEMPERATURE, MOST, REPEATS = 0.5, 3.0, 15
SIZES = ((1, 12, 64, 25), (8, 30, 384, 25), (8, 64, 384, 100), (4, 128, 768, 25))  # games, players, dimensions, K
INDICES = ("SV", "BII")
PROPOSALS: tuple[ProposalName, ...] = ("uniform", "tilted")


def run(seed: int = 0) -> dict[str, Any]:
    """A row for each size and index, and the largest ratio of both times."""
    rows: list[dict[str, Any]] = []
    for (batch, players, dim, budget), index in progress(list(product(SIZES, INDICES)), "proposals"):
        values = torch.randn(batch, players, dim, generator=torch.Generator().manual_seed(seed)) / dim**0.5
        row: dict[str, Any] = {"games": batch, "players": players, "dim": dim, "budget": budget, "index": index}
        for proposal in PROPOSALS:
            estimate = partial(_estimate, values, index, budget, proposal, seed)
            row[proposal] = {"seconds": seconds(estimate, REPEATS), "ess": float(estimate().ess.mean())}
        rows.append(row | {"ratio": row["tilted"]["seconds"] / row["uniform"]["seconds"]})
    largest = max(row["ratio"] for row in rows)
    return {"rows": rows, "largest": largest, "smallest": min(row["ratio"] for row in rows), "passed": largest <= MOST}


def _estimate(values: Tensor, index: str, budget: int, proposal: ProposalName, seed: int) -> Estimate:
    options: dict[str, Any] = {"weighting": "gibbs", "temperature": TEMPERATURE, "proposal": proposal}
    return estimate_values(NormGame(values), index, budget, seed=seed, errors=False, **options)
