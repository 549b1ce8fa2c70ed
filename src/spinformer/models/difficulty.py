"""How hard a text is for a game, from what the encoder makes of it."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks


@dataclass(frozen=True)
class Difficulty:
    """t = slope . x + offset, held within low .. high

    x: the vector of a text (`PredictedGames.vectors`); t: by how much the logarithm of the game's error on it differs
    from that of other texts with the same number of words, as sure a classifier and a game that does as much. low,
    high: the easiest and the hardest of the texts that this was learnt from.
    """

    slope: tuple[float, ...]
    offset: float
    low: float
    high: float

    def __call__(self, vectors: Tensor) -> Tensor:
        """t of texts with these vectors, (B, d) -> (B,)."""
        checks.shape("vectors", vectors, (len(vectors), len(self.slope)))
        slope = torch.tensor(self.slope, dtype=torch.float64, device=vectors.device)
        return (vectors.double() @ slope + self.offset).clamp(self.low, self.high)

    def to_dict(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Any) -> "Difficulty":
        """What `to_dict` gave; a ValueError where it is something else."""
        try:
            slope, *rest = (stored[name] for name in ("slope", "offset", "low", "high"))
            numbers = [*slope, *rest]
        except (KeyError, TypeError) as error:
            raise ValueError("difficulty must have slope, offset, low and high") from error
        if not slope or not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
            raise ValueError("difficulty must have finite numbers")
        return cls(tuple(map(float, slope)), *map(float, rest))
