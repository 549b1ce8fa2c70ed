"""Learn how hard a text is for a game, from texts on which the game's error was measured."""

import torch
from torch import Tensor

from spinformer.models.difficulty import Difficulty

LEAST = 20  # texts, below which nothing is learnt
PARTS = 10  # of the texts, each of which is predicted from the others
PENALTIES = (1.0, 3.0, 10.0, 30.0)


def learn_difficulty(vectors: Tensor, errors: Tensor, known: Tensor) -> tuple[Difficulty | None, Tensor]:
    """argmin over w of sum over texts of (r - w . x)^2 + penalty |w|^2,   r: errors less what `known` says of them

    vectors: x, (T, d), taken in units of their own spread; errors: logarithms, (T,); known: features of the texts,
    (T, k), of which the first is 1. Returns the difficulty, None for fewer than LEAST texts, and for each of the texts
    what the others say of it, (T,): of texts that it was learnt from, a difficulty knows too much. The penalty is the
    one of PENALTIES with which the others say best; None, too, where they say less than nothing.
    """
    count = len(errors)
    if count < LEAST:
        return None, torch.zeros(count, dtype=torch.float64)
    x, y, known = vectors.double().cpu(), errors.double().cpu(), known.double().cpu()
    y = y - known @ torch.linalg.lstsq(known, y[:, None], driver="gelsd").solution[:, 0]
    part = torch.arange(count) % PARTS

    def predicted(penalty: float) -> Tensor:
        found = torch.empty_like(y)
        for own in range(PARTS):
            found[part == own] = _ridge(x[part != own], y[part != own], penalty)(x[part == own])
        return found

    others = [predicted(penalty) for penalty in PENALTIES]
    left = [float((found - y).square().sum()) for found in others]
    best = min(range(len(PENALTIES)), key=left.__getitem__)
    if left[best] >= float(y.square().sum()):
        return None, torch.zeros_like(y)
    return _ridge(x, y, PENALTIES[best]), others[best]


def _ridge(x: Tensor, y: Tensor, penalty: float) -> Difficulty:
    """With a kernel that is the mean over the d numbers of the vectors, so that d does not matter."""
    centre, spread = x.mean(0), x.std(0).clamp_min(1e-6)
    units = (x - centre) / spread
    kernel = units @ units.mT / x.shape[1]
    dual = torch.linalg.solve(kernel + penalty * torch.eye(len(x), dtype=x.dtype), y - y.mean())
    slope = units.mT @ dual / x.shape[1] / spread
    reached = (x - centre) @ slope
    offset = -float(centre @ slope)
    return Difficulty(tuple(slope.tolist()), offset, float(reached.min()), float(reached.max()))
