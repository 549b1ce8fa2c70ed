"""Whether an operator can run here, and sizes of its blocks."""

import os
from importlib.util import find_spec

import torch
from torch import Tensor

HAS_TRITON = find_spec("triton") is not None
# Triton's own interpreter runs the device code on the CPU, slowly, for tests.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
MOST_BLOCKS = 65_535  # that the second axis of a launch may have


def has_kernels(device: torch.device) -> bool:
    """Whether Triton can work on tensors there: on a GPU, or on the CPU under its interpreter."""
    return HAS_TRITON and (device.type == "cuda" or INTERPRETED)


def usable(*tensors: Tensor) -> bool:
    """Whether Triton can work on these: float32 tensors, all of them there."""
    return all(tensor.dtype == torch.float32 and has_kernels(tensor.device) for tensor in tensors)


def block(size: int, least: int = 16) -> int:
    """The power of two that is not below `size`, and at least `least`."""
    return max(least, 1 << (size - 1).bit_length())


def rows_of(n: int, usual: int) -> int:
    """Rows of a block, `usual` or as many times two as it takes for n rows to be at most MOST_BLOCKS blocks."""
    return usual if -(-n // usual) <= MOST_BLOCKS else rows_of(n, 2 * usual)
