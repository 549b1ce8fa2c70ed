"""The spins of an explained text at work: how they converge, and what they do from cold to hot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from spinformer import checks
from spinformer.attention.play import Played
from spinformer.attention.settings import Settings
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split
from spinformer.explain.explaining import PAIR_SAMPLES, SAMPLES
from spinformer.explain.grounded import TEMPERATURE, Grounded
from spinformer.ising import Ising, mean_field
from spinformer.models.grounding import GroundedGames

SOLVER = Settings()  # damping, steps and tolerance of the paper
# A trace goes on until its residual is this part of the solver's tolerance, so that one sees it fall.
BEYOND = 0.01
# Of the temperature at which the model was made, from cold to hot.
SPAN = tuple(2.0 ** (third / 3) for third in range(-15, 10))


@dataclass(frozen=True)
class SpinTrace:
    """words, sides: of the text or pair; temperature: gamma; damping, tolerance: of the iteration; magnetization: m of
    each word after 0, 1, 2 ... steps; residual: max_i |F(m)_i - m_i| at each of them, F the undamped map.
    """

    words: tuple[str, ...]
    sides: tuple[int, ...]
    temperature: float
    damping: float
    tolerance: float
    magnetization: tuple[tuple[float, ...], ...]
    residual: tuple[float, ...]

    @property
    def converged(self) -> bool:
        """Whether the last residual is within the tolerance."""
        return self.residual[-1] <= self.tolerance

    @property
    def attention(self) -> list[float]:
        """alpha = (1 + m) / 2 of each word at the end (Eq. 11)."""
        return [(1 + m) / 2 for m in self.magnetization[-1]]


@dataclass(frozen=True)
class Sweep:
    """words, sides: of the text or pair; made_at: gamma of the explanation, at which fields and couplings were
    estimated; temperatures: those gone through, rising; attention: of each word at each of them; converged: whether
    the mean field was reached there.
    """

    words: tuple[str, ...]
    sides: tuple[int, ...]
    made_at: float
    temperatures: tuple[float, ...]
    attention: tuple[tuple[float, ...], ...]
    converged: tuple[bool, ...]


def trace_spins(
    grounded: Grounded,
    tokenizer: Any,
    premise: str,
    hypothesis: str | None = None,
    *,
    temperature: float = TEMPERATURE,
    steps: int = 60,
    samples: int = SAMPLES,
    pair_samples: int = PAIR_SAMPLES,
    max_length: int = 128,
    seed: int = 0,
) -> SpinTrace:
    """The iteration of Eq. 16 on the Ising model of the explanation that `explain` gives with the same arguments."""
    words, ising = _model(
        grounded, tokenizer, premise, hypothesis, temperature, (samples, pair_samples), max_length, seed
    )
    path, residual = iterate(ising, steps=steps)
    return SpinTrace(
        words.words[0],
        words.sides[0],
        temperature,
        SOLVER.damping,
        SOLVER.tol,
        tuple(tuple(m) for m in path[:, 0].tolist()),
        tuple(residual[:, 0].tolist()),
    )


def sweep_temperature(
    grounded: Grounded,
    tokenizer: Any,
    premise: str,
    hypothesis: str | None = None,
    *,
    temperatures: Sequence[float] | None = None,
    temperature: float = TEMPERATURE,
    samples: int = SAMPLES,
    pair_samples: int = PAIR_SAMPLES,
    max_length: int = 128,
    seed: int = 0,
) -> Sweep:
    """The mean field of the explanation's Ising model at other temperatures, its fields and couplings as they are.

    temperature: gamma at which these were estimated; temperatures: those to go through (default: from a 32nd to 8
    times that). Where it is cold every spin is up or down, and the equations may have no answer that iteration finds.
    """
    through = sorted(temperature * part for part in SPAN) if temperatures is None else sorted(temperatures)
    if not through:
        raise ValueError("temperatures must hold at least one number; got none")
    for one in through:
        checks.positive("temperatures", one)
    words, ising = _model(
        grounded, tokenizer, premise, hypothesis, temperature, (samples, pair_samples), max_length, seed
    )
    many = Ising(
        ising.fields.expand(len(through), -1),
        ising.couplings.dense().expand(len(through), -1, -1),
        torch.tensor(through, dtype=ising.fields.dtype, device=ising.fields.device),
    )
    with torch.no_grad():
        solved = mean_field(
            many,
            max_steps=SOLVER.max_steps,
            damping=SOLVER.damping,
            tol=SOLVER.tol,
            correction=SOLVER.correction,
            solver=SOLVER.solver,
        )
    return Sweep(
        words.words[0],
        words.sides[0],
        temperature,
        tuple(through),
        tuple(tuple(row) for row in ((1 + solved.magnetization) / 2).tolist()),
        tuple(solved.converged.tolist()),
    )


@torch.no_grad()
def iterate(
    ising: Ising, *, steps: int, damping: float = SOLVER.damping, tolerance: float = BEYOND * SOLVER.tol
) -> tuple[Tensor, Tensor]:
    """m <- damping F(m) + (1 - damping) m from m = 0, F(m)_i = tanh((h_i + sum_j J_ij m_j) / gamma)      (Eq. 16)

    m after every step, (steps + 1, B, n), and the residuals max_i |F(m)_i - m_i|, (steps + 1, B); it ends when all of
    these are within `tolerance`, or after `steps`.
    """
    checks.at_least("steps", steps, 1)
    m = torch.zeros_like(ising.fields)
    path, residual = [m], [(ising.update(m) - m).abs().amax(-1)]
    while len(path) <= steps and bool((residual[-1] > tolerance).any()):
        m = torch.lerp(m, ising.update(m), damping)
        path.append(m)
        residual.append((ising.update(m) - m).abs().amax(-1))
    return torch.stack(path), torch.stack(residual)


def played(
    grounded: Grounded, games: GroundedGames, samples: int, pair_samples: int, temperature: float, seed: int
) -> Played:
    """The Ising models of an explanation with this seed, and their mean fields."""
    return replace(grounded, samples=samples, pair_samples=pair_samples).play(games, temperature, seed)


def _model(
    grounded: Grounded,
    tokenizer: Any,
    premise: str,
    hypothesis: str | None,
    temperature: float,
    budget: tuple[int, int],
    max_length: int,
    seed: int,
) -> tuple[Words, Ising]:
    checks.at_least("samples", min(budget), 4)
    words = split(tokenizer, Texts([premise], None if hypothesis is None else [hypothesis]), max_length)
    found = played(grounded, grounded.games(words), *budget, temperature, seed)
    return words, Ising(found.fields, found.couplings, temperature)
