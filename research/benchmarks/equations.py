"""Every numbered equation of both papers: the library against a plain recomputation."""

from typing import Any

from research.benchmarks import equations_attractor, equations_games, equations_layer
from spinformer._base.progress import progress

TOLERANCE = 1e-9


def run(seed: int = 0) -> dict[str, Any]:
    """The largest difference for each equation, as `ngt-4` or `att-1`; nothing here depends on the seed.

    eq_34_total: what the probabilities of NGT Eq. 34 add up to, for so many players.
    """
    papers = {
        "ngt": {**equations_games.EQUATIONS, **equations_layer.EQUATIONS},
        "att": equations_attractor.EQUATIONS,
    }
    checks = [(f"{paper}-{number}", check) for paper, rows in papers.items() for number, check in rows.items()]
    differences = {name: check() for name, check in progress(checks, "equations")}
    return {
        "differences": differences,
        "tolerance": TOLERANCE,
        "players": equations_games.PLAYERS,
        "eq_34_total": equations_games.permutation_total(),
        "passed": max(differences.values()) <= TOLERANCE,
    }
