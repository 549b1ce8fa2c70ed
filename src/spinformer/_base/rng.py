"""Random numbers that depend on the seed and their indices, and on nothing else.

    u[row, draw, column] = hash(seed, row, draw, column) / 2^24

A counter-based generator: the same seed gives the same numbers on every device, and a number does not change when there
are more rows, draws or columns. So a sample's answer does not depend on its batch or its padding. The mixing function
is Ettinger's two-round 32-bit hash with small constants, so that 64-bit integers never overflow; two independent lanes
of 32 bits identify a stream.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.recording import recording

_MASK = 0xFFFFFFFF
_GOLDEN = 0x9E3779B9
_GLOBAL = threading.RLock()


def draw_seed(generator: torch.Generator | None, device: torch.device | None = None) -> Tensor:
    """A fresh 62-bit seed from `generator`, or from torch's global state, as a scalar on the CPU.

    Under torch.compile and while a CUDA graph is recorded, without a generator, it is drawn and stays on `device`: a
    graph that touches the CPU could not be replayed, and a number from there would be the same in every replay.
    """
    check_generator(generator)
    if generator is None and (torch.compiler.is_compiling() or recording()):
        return torch.randint(2**62, (), device=device)
    where = generator.device if generator is not None else torch.device("cpu")
    return torch.randint(2**62, (), generator=generator, device=where).cpu()


def check_generator(generator: torch.Generator | None) -> None:
    """A TypeError unless it is a generator of torch or None."""
    if generator is not None:
        checks.instance("generator", generator, torch.Generator)


def as_seed(seed: Tensor | int) -> Tensor:
    """A seed as a scalar tensor: an integer of 64 bits, or a tensor that holds one."""
    if isinstance(seed, Tensor):
        if seed.numel() != 1 or seed.is_floating_point() or seed.is_complex() or seed.dtype == torch.bool:
            raise ValueError(f"seed must be one integer; got {seed.dtype} of shape {tuple(seed.shape)}")
        return seed.reshape(())
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed must be an integer, or a tensor that holds one; got {type(seed).__name__}")
    if not -(2**63) <= seed < 2**63:
        raise ValueError(f"seed must be an integer of 64 bits; got {seed}")
    return torch.tensor(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Torch's global generator of the CPU seeded inside the block, and as it was before after it.

    For what draws from it and cannot be given another, such as initial weights and dropout. One thread at a time: two
    that saved and restored on their own would leave each other's numbers.
    """
    with _GLOBAL, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


@contextmanager
def preserved() -> Iterator[None]:
    """The global generators of torch, numpy and Python are after the block as they were before it.

    For libraries that seed and use these. One thread at a time, as with `seeded`.
    """
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with _GLOBAL, torch.random.fork_rng(devices=devices):
        python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def uniforms(seed: Tensor, rows: int, draws: int, columns: int, device: torch.device) -> Tensor:
    """Independent uniform numbers in (0, 1), float32, of shape (rows, draws, columns)."""
    first, second = _streams(seed, rows, draws, device)
    bits = _mix(_mix(torch.arange(columns, device=device) + first) + second)  # (rows, draws, columns)
    return ((bits >> 8).float() + 0.5) * 2.0**-24


def _streams(seed: Tensor, rows: int, draws: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Two lanes of 32 bits for every row and draw, each (rows, draws, 1).

    These take many small operations on little data, so they are computed on the host, in numpy, and copied at once.
    Under torch.compile, where the seed's value is not known, and while a CUDA graph is recorded, which allows no copy,
    the same code runs on tensors.
    """
    on_device = torch.compiler.is_compiling() or recording()
    code: Any = seed_on(device, seed) if on_device else int(seed)
    row: Any = torch.arange(rows, device=device) if on_device else np.arange(rows)
    draw: Any = torch.arange(draws, device=device) if on_device else np.arange(draws)
    lanes = [
        _mix(_mix(_mix(lane + salt) + _times_golden(row[:, None])) + draw * 2 + salt)
        for salt, lane in enumerate((code & _MASK, code >> 32))
    ]
    if not on_device:
        both = torch.from_numpy(np.stack(lanes)).to(device, non_blocking=device.type == "cuda")
        lanes = list(both.unbind())
    return lanes[0][..., None], lanes[1][..., None]


def seed_on(device: torch.device, seed: Tensor) -> Tensor:
    """The seed on the device, by a copy where torch may plan it, else by a fill."""
    if torch.compiler.is_compiling() or seed.device == device:
        return seed.to(device)
    return torch.full((), int(seed), dtype=torch.long, device=device)


def _times_golden(index: Any) -> Any:
    """index * _GOLDEN in two halves: torch.compile takes an index and a number beyond 32 bits for a fault."""
    return ((index * (_GOLDEN >> 16)) << 16) + index * (_GOLDEN & 0xFFFF)


def _mix(value: Any) -> Any:
    """The hash of the low 32 bits of 64-bit integers: of a number, a numpy array or a tensor."""
    value = value & _MASK
    value = (value ^ (value >> 16)) * 0x21F0AAAD & _MASK
    value = (value ^ (value >> 15)) * 0x735A2D97 & _MASK
    return value ^ (value >> 15)
