"""Learning rates over a run: a warm-up, then a decay."""

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
    from_zero: bool = True,
    milestones: Sequence[float] = (),
    factor: float = 0.1,
    steps_per_epoch: float = 1.0,
) -> LambdaLR:
    """rate(t) = peak t / w for t < w, and then, with u = (t - w) / (T - w),
    linear: peak (1 - u);   cosine: peak (1 + cos(pi u)) / 2;   constant: peak;   steps: peak factor^k

    t: the step, from 0; T: `steps`; w: `warmup` T, rounded up; k: how many of the `milestones`, counted in epochs of
    `steps_per_epoch`, have passed; peak: the learning rate of the optimizer.
    from_zero: if false, the warm-up is peak (t + 1) / w with w rounded to the nearest, at least 1, so that the first
    step already moves the weights. NGT section 7.3: warmup 0.1, then steps, factor 0.1 after epochs 3 and 4.
    """
    rise = math.ceil(warmup * steps) if from_zero else max(1, round(warmup * steps))

    def rate(step: int) -> float:
        if step < rise:
            return (step if from_zero else step + 1) / rise
        part = min(1.0, (step - rise) / max(1, steps - rise))
        if kind == "linear":
            return 1 - part
        if kind == "cosine":
            return (1 + math.cos(math.pi * part)) / 2
        if kind == "steps":
            return factor ** sum(step >= epoch * steps_per_epoch for epoch in milestones)
        return 1.0

    return LambdaLR(optimizer, rate)
