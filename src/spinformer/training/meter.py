"""What a training run shows while it goes on: means since the last log line, and one bar."""

from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm
from transformers import TrainerCallback

from spinformer.attention.output import Diagnostics


class Meter:
    """Means over the rows seen since the last reading; sums stay on the device until then."""

    def __init__(self) -> None:
        self.sums: dict[str, Tensor] = {}

    def add(self, logits: Tensor, targets: Tensor, diagnostics: Diagnostics | None, **others: Tensor) -> None:
        """One batch; others: further numbers, one a row, by name."""
        for name, values in others.items():
            self._add(name, values.detach())
        right = logits.detach().argmax(-1) == targets.argmax(-1)
        self._add("accuracy", right.float())
        if diagnostics is not None:
            self._add("ess", diagnostics.ess.detach())
            self._add("residual", diagnostics.residual.detach())
            self._add("converged", diagnostics.converged.float())

    def _add(self, name: str, values: Tensor) -> None:
        pair = torch.stack([values.sum(), values.new_full((), values.numel())]).double()
        self.sums[name] = self.sums[name] + pair if name in self.sums else pair

    def read(self, accelerator: Any) -> dict[str, float]:
        """The means over all processes; starts again."""
        sums, self.sums = self.sums, {}
        totals = {name: accelerator.reduce(pair, reduction="sum") for name, pair in sums.items()}
        return {name: float(total[0] / total[1]) for name, total in totals.items()}


class Bar(TrainerCallback):
    """One bar for the run, with what was last logged behind it."""

    SHOWN = ("loss", "accuracy", "ess", "residual", "apart", "eval_accuracy")

    def __init__(self) -> None:
        self.bar: Any = None
        self.shown: dict[str, str] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open it, where a resumed run left off."""
        if state.is_world_process_zero:
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, desc="training", dynamic_ncols=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """One step on."""
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        """Show it."""
        if self.bar is not None and logs:
            self.shown |= {name: f"{logs[name]:.3g}" for name in self.SHOWN if name in logs}
            self.bar.set_postfix(self.shown, refresh=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close it."""
        if self.bar is not None:
            self.bar.close()
