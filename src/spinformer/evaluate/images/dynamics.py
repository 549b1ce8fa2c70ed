"""Choose, on held-out images, how an attractor network restores: λ, γ, the number of steps, what keeps its value.

Memories are transient states: the error falls for some steps and then rises. With some λ and γ it rises a little, with
others the states grow without bound. Only stable ones are chosen, so that going on does no harm.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import torch
from torch import Tensor

from spinformer._base.progress import progress
from spinformer.data.corruption import Corrupted, corrupt
from spinformer.models.attractor import AttractorNetwork, Dynamics

STRENGTHS = (0.3, 0.6, 0.8, 1.0)
INERTIAS = (0.0, 0.1, 0.25, 0.5, 1.0)
STEPS = 16
# Stable: the error after STEPS steps is at most this many times the least.
RISE = 1.25


@torch.no_grad()
def choose_dynamics(
    network: AttractorNetwork, images: Tensor, task: str, *, steps: int = STEPS, seed: int = 0, quiet: bool = False
) -> Dynamics:
    """argmin over λ, γ, t <= steps and pin of the error after t steps, among those that are stable

    images: not those that were trained on. Visible tokens may keep their values in the task "masked". Where nothing is
    stable, the least error of all.
    """
    corrupted = corrupt(images, task, network.embedding, generator=torch.Generator(images.device).manual_seed(seed))
    pins = (False,) if corrupted.mask is None else (False, True)
    grid = list(product(STRENGTHS, INERTIAS, pins))
    found: list[tuple[bool, Dynamics]] = []
    with _kept(network):
        for strength, inertia, pin in grid if quiet else progress(grid, f"dynamics, {task}", len(grid)):
            network.layer.strength, network.layer.inertia = strength, inertia
            errors = _errors(network, corrupted, steps, pin=pin)
            best = min(range(steps), key=errors.__getitem__)
            stable = errors[-1] <= RISE * errors[best]
            found.append((stable, Dynamics(strength, inertia, best + 1, pin, errors[best])))
    return min(found, key=lambda one: (not one[0], one[1].error))[1]


def _errors(network: AttractorNetwork, corrupted: Corrupted, steps: int, *, pin: bool) -> list[float]:
    """After 1 .. steps steps; infinite where states are not finite."""
    path = network.trajectory(corrupted.given, steps, corrupted.mask, pin=pin, unbounded=True)
    errors = [corrupted.error(network.images(state)) for state in path[1:]]
    return [math.inf if math.isnan(error) else error for error in errors]


@contextmanager
def _kept(network: AttractorNetwork) -> Iterator[None]:
    """λ and γ are afterwards what they were."""
    before = network.layer.strength, network.layer.inertia
    try:
        yield
    finally:
        network.layer.strength, network.layer.inertia = before
