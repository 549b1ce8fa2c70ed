"""Whether a CUDA graph is being recorded: then the host must not wait for the device, and loops have a fixed length."""

import torch


def recording() -> bool:
    """Of the current stream. False where CUDA is not in use."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
