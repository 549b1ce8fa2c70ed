"""Records of an explained text's spins: how they converge, and what they do from cold to hot."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpinTrace:
    """One run of the mean-field iteration.

    words, sides: of the text or the two texts, as in `Word`; temperature: gamma; damping, tolerance: of the iteration;
    magnetization: m of each word after 0, 1, 2 ... steps; residual: max_i |F(m)_i - m_i| at each of them, F the
    undamped map.
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
        """alpha = (1 + m) / 2 of each word at the end."""
        return [(1 + m) / 2 for m in self.magnetization[-1]]  # NGT Eq. 11


@dataclass(frozen=True)
class TemperatureSweep:
    """One Ising model, solved at several temperatures.

    words, sides: of the text or the two texts, as in `Word`; estimated_at: gamma of the explanation, at which fields
    and couplings were estimated; temperatures: those at which the model was solved, rising; attention: of each word at
    each of them; converged: whether the mean field was reached there.
    """

    words: tuple[str, ...]
    sides: tuple[int, ...]
    estimated_at: float
    temperatures: tuple[float, ...]
    attention: tuple[tuple[float, ...], ...]
    converged: tuple[bool, ...]
