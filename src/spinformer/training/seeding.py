"""Random numbers of one step or one epoch of a run, so that a resumed run draws what an uninterrupted one does."""

import torch

STRIDE = 1_000_003


def step_seed(seed: int, step: int, stride: int = STRIDE) -> int:
    """seed stride + step: runs of different seeds share no draws as long as they have fewer than `stride` steps."""
    return seed * stride + step


def step_generator(seed: int, step: int, stride: int = STRIDE, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for the draws of one step or epoch alone, seeded by `step_seed`."""
    return torch.Generator(device).manual_seed(step_seed(seed, step, stride))
