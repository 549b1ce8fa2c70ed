"""Learning rates over a run: a rise, then a fall."""

import math
from collections.abc import Sequence

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def schedule(
    optimizer: Optimizer,
    kind: str,
    steps: int,
    *,
    warmup: float,
    milestones: Sequence[float] = (),
    factor: float = 0.1,
    steps_per_epoch: float = 1.0,
) -> LambdaLR:
    """rate(t) = peak t / w for t < w = warmup * steps, and then
    linear: peak (T - t) / (T - w); cosine: peak (1 + cos(pi (t - w) / (T - w))) / 2; constant: peak;
    steps: peak factor^k after k milestones, each an epoch's end.
    """
    rise = math.ceil(warmup * steps)

    def rate(step: int) -> float:
        if step < rise:
            return step / rise
        part = (step - rise) / max(1, steps - rise)
        if kind == "linear":
            return max(0.0, 1 - part)
        if kind == "cosine":
            return (1 + math.cos(math.pi * min(1.0, part))) / 2
        if kind == "steps":
            return factor ** sum(step >= epoch * steps_per_epoch for epoch in milestones)
        return 1.0

    return LambdaLR(optimizer, rate)
