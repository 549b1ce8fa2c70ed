"""Statements of both papers that small exact calculations decide: games, spins, the energy of the attractor."""

from collections.abc import Callable
from typing import Any

from research.benchmarks import theory_attractor, theory_games, theory_spins
from research.data import encoder_sample
from spinformer._base.progress import progress


def statements() -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured, by name."""
    return {
        "properties": theory_games.properties,
        "orders": theory_games.orders,
        "axioms": theory_games.axioms,
        "bias": theory_games.bias,
        "rate": theory_games.rate,
        "evaluations": theory_games.evaluations,
        "theorem": theory_spins.theorem,
        "temperatures": theory_spins.temperatures,
        "independence": theory_spins.independence,
        "layer": theory_spins.layer,
        "table_1": theory_spins.table_1,
        "attractor_energy": theory_attractor.energies,
        "attractor_embedding": theory_attractor.embedding,
        "attractor_couplings": theory_attractor.couplings,
    }


def run(seed: int = 0) -> dict[str, Any]:
    """The numbers of each statement, of which `research.reports.reproduction` makes verdicts; every seed is fixed.

    pairs: sentence pairs of the encoder outputs.
    """
    measures = statements()
    outcome = {name: measure() for name, measure in progress(measures.items(), "statements", len(measures))}
    return {**outcome, "pairs": len(encoder_sample().pairs), "passed": outcome["axioms"]["shapley"] < 1e-9}
