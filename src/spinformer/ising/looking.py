"""When to ask a device whether an iteration is over."""

import torch
from torch import Tensor

# Steps between two questions, by the kind of device. A question makes the host wait until a GPU has caught up, which
# costs more than a few steps in vain; on the CPU it costs nothing.
EVERY = {"cpu": 1}
ELSEWHERE = 4


def over(active: Tensor, step: int, every: int | None = None) -> bool:
    """Whether no sample is active any more, as far as is known at this step, counted from 0.

    For iterations in which a sample that is done stays as it is: asked seldom, they give the same numbers. every: the
    steps between two questions, where not the device's own; under torch.compile nothing is asked.
    """
    if torch.compiler.is_compiling():
        return False
    if (step + 1) % (every or EVERY.get(active.device.type, ELSEWHERE)):
        return False
    return not bool(active.any())
