"""The devices of this machine."""

import os

import torch


def usable_device(device: torch.device | str | None) -> torch.device:
    """The device of this name; None: cuda where there is one, else cpu. One that is not here is a ValueError.

    Where several processes share a machine (LOCAL_RANK, as torchrun and accelerate set it), cuda without a number is
    this process's own.
    """
    if device is None:
        return own_gpu() if torch.cuda.is_available() else torch.device("cpu")
    try:
        torch.empty(0, device=device)
        found = torch.device(device)
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"device must be one of this machine's, as cpu or cuda; got {device!r} ({reason})") from None
    return own_gpu() if found == torch.device("cuda") else found


def own_gpu() -> torch.device:
    """The GPU of this process; they are shared out in turn where there are fewer than processes."""
    rank = os.environ.get("LOCAL_RANK", "")
    count = torch.cuda.device_count()
    return torch.device("cuda", int(rank) % count) if rank.isdecimal() and count else torch.device("cuda")
