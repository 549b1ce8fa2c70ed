"""What a training run does around its updates, beside what Trainer does."""
# ruff: noqa: E402

from typing import Any

from spinformer._base.extras import require

require("transformers", extra="nli")

from transformers import TrainerCallback

from spinformer._base.progress import progress_bar


class UpdateCallback(TrainerCallback):
    """Gives the sampler its epoch and the weight average each update, and delays checkpoints at the end of an epoch.

    A checkpoint at the end of an epoch is written after the epoch's score, so that a resumed run has that score too.
    """

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.save_pending = trainer, False

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Shuffle anew."""
        self.trainer.sampler.set_epoch(int((state.epoch or 0) + 1e-6))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Average the weights; delay the checkpoint if the epoch, or the training, ends with this update."""
        if self.trainer.average is not None:
            self.trainer.average.update(state.global_step)
        last = state.global_step % self.trainer.updates_per_epoch == 0 or state.global_step >= state.max_steps
        if control.should_save and last:
            control.should_save, self.save_pending = False, True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the delayed checkpoint; Trainer scores before it saves."""
        control.should_save, self.save_pending = control.should_save or self.save_pending, False


class ProgressBar(TrainerCallback):
    """One bar for the run, with the last logged values behind it."""

    SHOWN = ("loss", "accuracy", "ess", "residual", "apart", "eval_accuracy")

    def __init__(self) -> None:
        self.bar: Any = None
        self.values: dict[str, str] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open the bar; a resumed run begins where it stopped."""
        if state.is_world_process_zero:
            self.bar = progress_bar(state.max_steps, "training", done=state.global_step, leave=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Move the bar."""
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        """Show the values."""
        if self.bar is not None and logs:
            self.values |= {name: f"{logs[name]:.3g}" for name in self.SHOWN if name in logs}
            self.bar.set_postfix(self.values, refresh=False)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()
