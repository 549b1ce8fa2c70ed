"""What happens around the updates of a training run."""

from typing import Any

from transformers import TrainerCallback


class Steps(TrainerCallback):
    """Tells the sampler the epoch, and the average each update; has a checkpoint at the end of an epoch wait for the
    score that belongs to it, which a run that goes on from there would lack.
    """

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.waiting = trainer, False

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The sampler shuffles anew."""
        self.trainer.sampler.set_epoch(int((state.epoch or 0) + 1e-6))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The weights have changed; a checkpoint waits where the epoch, or training, ends with it."""
        if self.trainer.average is not None:
            self.trainer.average.update(state.global_step)
        last = state.global_step % self.trainer.updates == 0 or state.global_step >= state.max_steps
        if control.should_save and last:
            control.should_save, self.waiting = False, True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Scores come first, then what waits."""
        control.should_save, self.waiting = control.should_save or self.waiting, False
