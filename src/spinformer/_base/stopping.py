"""When to check on a device whether an iteration is over."""

import torch
from torch import Tensor

from spinformer._base.recording import recording

# Steps between two checks, by the kind of device. A check makes the host wait for a GPU, which costs more than a few
# needless steps; on the CPU it costs nothing.
CHECK_EVERY = {"cpu": 1}
CHECK_EVERY_DEFAULT = 4


def all_done(active: Tensor, step: int, every: int | None = None) -> bool:
    """Whether no sample is active any more; False at steps, counted from 0, at which this is not checked.

    For iterations in which a sample that is done stays as it is: rare checks then do not change the numbers. every:
    steps between two checks, None for the device's default; under torch.compile and while a CUDA graph is recorded
    there are none.
    """
    if torch.compiler.is_compiling() or recording():
        return False
    if (step + 1) % (every or CHECK_EVERY.get(active.device.type, CHECK_EVERY_DEFAULT)):
        return False
    return not bool(active.any())
