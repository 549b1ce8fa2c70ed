"""Means of what training measures, between two log lines."""

from typing import Any

import torch
from torch import Tensor

from spinformer.attention.output import Diagnostics


class Meter:
    """Means over the rows since the last reading; sums stay on the device until then."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}

    def add(self, logits: Tensor, targets: Tensor, diagnostics: Diagnostics | None, **others: Tensor) -> None:
        """Add one batch; others: further values by name, one for each row."""
        for name, values in others.items():
            self._add(name, values.detach())
        correct = logits.detach().argmax(-1) == targets.argmax(-1)
        self._add("accuracy", correct.float())
        if diagnostics is not None:
            self._add("ess", diagnostics.ess.detach())
            self._add("residual", diagnostics.residual.detach())
            self._add("converged", diagnostics.converged.float())

    def _add(self, name: str, values: Tensor) -> None:
        pair = torch.stack([values.sum(), values.new_full((), values.numel())]).double()
        self.sums[name] = self.sums[name] + pair if name in self.sums else pair

    def read(self, accelerator: Any) -> dict[str, float]:
        """The means over all processes; then begin anew."""
        sums, self.sums = self.sums, {}
        totals = {name: accelerator.reduce(pair, reduction="sum") for name, pair in sums.items()}
        return {name: float(total[0] / total[1]) for name, total in totals.items()}
