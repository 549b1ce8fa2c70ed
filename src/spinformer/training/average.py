"""A moving average of the weights, which is what is scored and kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

FILE = "average.safetensors"


class Average:
    """w <- b w + (1 - b) weights after update t, with b = min(decay, (1 + t) / (10 + t)), so that it forgets the start.

    Holds every parameter that is trained, in float32 or wider.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.shadow = {name: p.detach().clone() for name, p in self.parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """After the update number `step`."""
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.shadow.values()), [p.detach() for p in self.parameters.values()], weight)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within, the model has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def keep(self) -> None:
        """The model takes the averaged weights for good."""
        for name, parameter in self.parameters.items():
            parameter.copy_(self.shadow[name])

    def save(self, folder: Path) -> None:
        """Beside a checkpoint."""
        save_file({name: value.cpu().contiguous() for name, value in self.shadow.items()}, folder / FILE)

    def load(self, folder: Path) -> None:
        """From beside a checkpoint."""
        saved: dict[str, Tensor] = load_file(folder / FILE)
        if saved.keys() != self.shadow.keys():
            raise ValueError(f"{folder / FILE} holds the average of another model")
        for name, value in saved.items():
            self.shadow[name].copy_(value)

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in self.parameters.items():
            held = self.shadow[name].clone()
            self.shadow[name].copy_(parameter)
            parameter.copy_(held)
