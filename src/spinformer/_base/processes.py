"""The processes of one run, as torchrun and accelerate start them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from spinformer._base.devices import own_gpu, usable_device


def start_processes(device: torch.device | str) -> torch.device:
    """Join the processes that `torchrun` started; the device of this one: the GPU of its local rank, or the CPU."""
    if "WORLD_SIZE" not in os.environ:
        raise ValueError("several processes are needed: start the command with torchrun --nproc-per-node")
    cuda = torch.device(device).type == "cuda"
    dist.init_process_group("nccl" if cuda else "gloo")
    if not cuda:
        return torch.device(device)
    own = own_gpu()
    torch.cuda.set_device(own)
    return own


@contextmanager
def joined(device: torch.device | str) -> Iterator[torch.device]:
    """The device of this process, within the block together with the others where `torchrun` started several."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield usable_device(device)
        return
    own = start_processes(usable_device(device))
    try:
        yield own
    finally:
        dist.destroy_process_group()


def rank_and_world() -> tuple[int, int]:
    """The number of this process, and how many there are; 0 and 1 where none were joined."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def share(count: int, rank: int, world: int) -> range:
    """The part of `count` things that is this process's."""
    return range(count * rank // world, count * (rank + 1) // world)


def sum_over_processes(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor, of one dtype and device, by its sum over all processes, in one message."""
    flat = torch.cat([tensor.detach().flatten() for tensor in tensors])
    dist.all_reduce(flat)
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.detach().copy_(part.view_as(tensor))


def wait_for_all() -> None:
    """Go on when all processes are here."""
    if rank_and_world()[1] > 1:
        dist.barrier()
