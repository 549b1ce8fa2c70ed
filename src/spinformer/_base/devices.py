"""The devices of this machine."""

import torch


def usable_device(device: torch.device | str | None) -> torch.device:
    """The device of this name; None: cuda where there is one, else cpu. One that is not here is a ValueError."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
        return torch.device(device)
    except (RuntimeError, AssertionError, TypeError, ImportError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"device must be one of this machine's, as cpu or cuda; got {device!r} ({reason})") from None
