"""The spins of an explained text at work: how they converge, and what they do from cold to hot."""

from collections.abc import Sequence

import torch

from spinformer._base import checks
from spinformer.attention.settings import Settings
from spinformer.data.words import Words, split_words
from spinformer.explain.explainer import Explainer
from spinformer.explain.inputs import as_texts
from spinformer.explain.methods.game import NO_GAME
from spinformer.explain.traces import SpinTrace, TemperatureSweep
from spinformer.ising import Ising, mean_field

SOLVER = Settings()  # damping, steps and tolerance of the paper
# A trace goes on until its residual is this part of the solver's tolerance, so that one sees it fall.
TRACE_TOLERANCE = 0.01 * SOLVER.tol
# Temperatures of a sweep, from cold to hot, as multiples of the one at which the Ising model was made.
SPAN = tuple(2.0 ** (third / 3) for third in range(-15, 10))


def trace_spins(explainer: Explainer, text: str, text_pair: str | None = None, *, steps: int = 60) -> SpinTrace:
    """Every step of the mean-field iteration on the Ising model of the explanation `explainer(text, text_pair)`.

    steps: the largest number of them; it ends earlier where the residual is small.
    """
    checks.at_least("steps", steps, 1)
    words, ising = _ising_model(explainer, text, text_pair)
    with torch.no_grad():
        solved = mean_field(ising, max_steps=steps, damping=SOLVER.damping, tol=TRACE_TOLERANCE, return_trajectory=True)
    assert solved.trajectory is not None
    assert solved.residuals is not None
    return SpinTrace(
        words.words[0],
        words.sides[0],
        explainer.temperature,
        SOLVER.damping,
        SOLVER.tol,
        tuple(tuple(m) for m in solved.trajectory[0].tolist()),
        tuple(solved.residuals[0].tolist()),
    )


def sweep_temperature(
    explainer: Explainer, text: str, text_pair: str | None = None, *, temperatures: Sequence[float] | None = None
) -> TemperatureSweep:
    """The mean field of the explanation's Ising model at other temperatures, its fields and couplings as they are.

    temperatures: those to solve it at; by default from a 32nd to 8 times the explainer's. Where it is cold every spin
    is up or down, and the equations may have no solution that the iteration reaches.
    """
    multiples = [explainer.temperature * part for part in SPAN]
    chosen = sorted(multiples if temperatures is None else temperatures)
    if not chosen:
        raise ValueError("temperatures must hold at least one number; got none")
    for temperature in chosen:
        checks.positive("temperatures", temperature)
    words, ising = _ising_model(explainer, text, text_pair)
    copies = Ising(
        ising.fields.expand(len(chosen), -1),
        ising.couplings.dense().expand(len(chosen), -1, -1),
        torch.tensor(chosen, dtype=ising.fields.dtype, device=ising.fields.device),
    )
    with torch.no_grad():
        solved = SOLVER.solve(copies)
    attention = (1 + solved.magnetization) / 2  # NGT Eq. 11
    return TemperatureSweep(
        words.words[0],
        words.sides[0],
        explainer.temperature,
        tuple(chosen),
        tuple(tuple(row) for row in attention.tolist()),
        tuple(solved.converged.tolist()),
    )


def _ising_model(explainer: Explainer, text: str, text_pair: str | None) -> tuple[Words, Ising]:
    """The words of one text, or of one pair, and the Ising model that its game makes."""
    if explainer.grounded is None:
        raise ValueError(NO_GAME)
    words = split_words(explainer.tokenizer, as_texts(text, text_pair), explainer.max_length)
    games = explainer.grounded.games(words, explainer.classifier)
    attention = explainer.grounded.attention(games, explainer.temperature, explainer.seed, explainer.weighting)
    return words, Ising(attention.fields, attention.couplings, explainer.temperature)
