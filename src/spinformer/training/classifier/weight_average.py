"""A moving average of the weights: it is scored after each epoch, and replaces the weights at the end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spinformer._base.files import regular

FILE = "average.safetensors"


class WeightAverage:
    """a <- b a + (1 - b) w after update t,   b = min(decay, (1 + t) / (10 + t))

    a: the average; w: the trained parameters; the smaller b of the first updates forgets the initial weights. NGT
    section 7.3 has decay 0.999.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.average = {name: p.detach().clone() for name, p in self.parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """After the update number `step`, from 1."""
        weight = 1 - min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.average.values()), [p.detach() for p in self.parameters.values()], weight)

    @contextmanager
    def swap_in(self) -> Iterator[None]:
        """Within the block the model has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def copy_to_model(self) -> None:
        """Replace the model's weights by their average."""
        for name, parameter in self.parameters.items():
            parameter.copy_(self.average[name])

    def save(self, folder: Path) -> None:
        """Into the folder of a checkpoint."""
        save_file({name: value.cpu().contiguous() for name, value in self.average.items()}, folder / FILE)

    def load(self, folder: Path) -> None:
        """From the folder of a checkpoint."""
        saved: dict[str, Tensor] = load_file(regular(folder / FILE))
        if saved.keys() != self.average.keys():
            raise ValueError(f"{folder / FILE} holds the average of another model")
        for name, value in saved.items():
            self.average[name].copy_(value)

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in self.parameters.items():
            average = self.average[name].clone()
            self.average[name].copy_(parameter)
            parameter.copy_(average)
