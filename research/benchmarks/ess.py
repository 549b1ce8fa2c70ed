"""Effective sample size of Gibbs weights on real encoder outputs, under the uniform and the tilted proposal."""

from itertools import product
from typing import Any

import torch

from research.data import encoder_sample
from spinformer._base.progress import progress
from spinformer.games import NormGame, ProposalName, estimate_values

TEMPERATURE, BUDGETS, LEAST = 0.25, (25, 100, 400), 0.9
INDICES: tuple[str, ...] = ("SV", "BV", "BII")
PROPOSALS: tuple[ProposalName, ...] = ("uniform", "tilted")


def run(seed: int = 0) -> dict[str, Any]:
    """Mean over tokens or pairs of tokens, then the mean and the lowest over sentence pairs, as a part of K."""
    sample = encoder_sample()
    game = NormGame(sample.normed(), sample.mask)
    generator = torch.Generator().manual_seed(seed)
    jobs = list(product(BUDGETS, INDICES, PROPOSALS))
    rows: list[dict[str, Any]] = []
    for budget, index, proposal in progress(jobs, "effective sample size"):
        estimate = estimate_values(
            game,
            index,
            budget,
            weighting="gibbs",
            temperature=TEMPERATURE,
            proposal=proposal,
            estimator="plain",
            generator=generator,
        )
        inside = sample.mask if index != "BII" else (sample.mask[:, None] & sample.mask[:, :, None]).triu(1)
        parts = torch.stack([ess[keep].mean() for ess, keep in zip(estimate.ess, inside, strict=True)]) / budget
        rows.append(
            {
                "budget": budget,
                "index": index,
                "proposal": proposal,
                "mean": parts.mean().item(),
                "lowest": parts.min().item(),
            }
        )
    tilted = [row for row in rows if row["proposal"] == "tilted"]
    return {
        "temperature": TEMPERATURE,
        "pairs": len(sample.pairs),
        "rows": rows,
        "lowest_mean": min(row["mean"] for row in tilted),
        "lowest": min(row["lowest"] for row in tilted),
        "passed": all(row["mean"] >= LEAST for row in tilted),
    }
