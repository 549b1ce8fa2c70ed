"""Fields and couplings of the library against the loops of Algorithm 1, in one run.

B = 4, n = 128, d = 768, K = 15, Gibbs weights over the uniform proposal, as in the NeuroGame paper. The loops take too
long, so PART_TOKENS tokens and PART_PAIRS pairs of one sequence are timed, and the time of one token and one pair is
multiplied by their numbers: B n tokens and B n (n - 1) / 2 pairs.
"""

import time
from typing import Any

import torch

from research.benchmarks.timing import seconds
from spinformer.attention import algorithm1
from spinformer.games import NormGame, estimate_values

BATCH, TOKENS, DIM, BUDGET, TEMPERATURE = 4, 128, 768, 15, 0.25
PART_TOKENS, PART_PAIRS = 6, 24
LEAST = 1000.0
INDICES: tuple[str, ...] = ("SV", "BV", "BII")


def run(seed: int = 0) -> dict[str, Any]:
    """Seconds of both, their ratio, and the same for the default estimators."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(BATCH, TOKENS, DIM, generator=generator)
    one = values[0]

    start = time.perf_counter()
    for i in range(PART_TOKENS):
        algorithm1.shapley_value(one, i, BUDGET, TEMPERATURE, generator)
        algorithm1.banzhaf_value(one, i, BUDGET, TEMPERATURE, generator)
    per_token = (time.perf_counter() - start) / PART_TOKENS
    start = time.perf_counter()
    for j in range(1, PART_PAIRS + 1):
        algorithm1.interaction(one, 0, j, BUDGET, TEMPERATURE, generator)
    per_pair = (time.perf_counter() - start) / PART_PAIRS
    loops = BATCH * (TOKENS * per_token + TOKENS * (TOKENS - 1) / 2 * per_pair)

    def paper() -> None:
        for index in INDICES:
            estimate_values(
                NormGame(values),
                index,
                BUDGET,
                weighting="gibbs",
                temperature=TEMPERATURE,
                estimator="plain",
                generator=generator,
            )

    def default() -> None:
        for index in INDICES:
            estimate_values(NormGame(values), index, BUDGET, generator=generator)

    with torch.no_grad():
        ours, control = seconds(paper), seconds(default)
    return {
        "loops_seconds": loops,
        "loops_measured": {"tokens": PART_TOKENS, "pairs": PART_PAIRS},
        "seconds": ours,
        "ratio": loops / ours,
        "control_seconds": control,
        "control_ratio": loops / control,
        "passed": loops / ours >= LEAST,
    }
