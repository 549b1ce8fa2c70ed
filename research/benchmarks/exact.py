"""Exact values against shapiq's, on random table games."""

from typing import Any

import torch

from spinformer._base.extras import require
from spinformer._base.progress import progress
from spinformer.games import TableGame, exact_values
from spinformer.games.indices import INDICES

GAMES, LEAST, MOST = 200, 3, 10
TOLERANCE = 1e-6


def run(seed: int = 0) -> dict[str, Any]:
    """Largest difference for each index over GAMES games of LEAST to MOST players."""
    generator = torch.Generator().manual_seed(seed)
    worst = dict.fromkeys(INDICES, 0.0)
    for number in progress(range(GAMES), "exact values against shapiq"):
        players = LEAST + number % (MOST - LEAST + 1)
        table = torch.rand(2**players, generator=generator, dtype=torch.float64)
        table[0] = 0.0
        for index in INDICES:
            ours = exact_values(TableGame(table), index)
            worst[index] = max(worst[index], float((ours - shapiq_values(table, index)).abs().max()))
    return {
        "games": GAMES,
        "worst": worst,
        "tolerance": TOLERANCE,
        "passed": max(worst.values()) <= TOLERANCE,
    }


def shapiq_values(table: torch.Tensor, index: str) -> torch.Tensor:
    """The same index by shapiq's ExactComputer: (n,) or (n, n) with zero diagonal."""
    exact_computer = require("shapiq", extra="compare").ExactComputer
    players = (len(table) - 1).bit_length()
    bits = 2 ** torch.arange(players)

    def game(coalitions: Any) -> Any:
        return table[(torch.as_tensor(coalitions).long() * bits).sum(-1)].numpy()

    pairwise = index in ("SII", "BII")
    interactions = exact_computer(game, n_players=players)(index, order=2 if pairwise else 1)
    values = torch.zeros(*[players] * (2 if pairwise else 1), dtype=torch.float64)
    for coalition, position in interactions.interaction_lookup.items():
        if len(coalition) == values.dim():
            number = float(interactions.values[position])
            values[coalition] = number
            if pairwise:
                values[coalition[::-1]] = number
    return values
