"""A Trainer that goes on from a checkpoint as it was written, or says in one line what is wrong with it."""
# ruff: noqa: E402

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from spinformer._base.extras import require

require("transformers", extra="nli")
require("accelerate", extra="nli")

from transformers import Trainer, TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from spinformer.training.checkpoint import check_optimizer, one_line
from spinformer.training.classifier.checkpoints import checkpoint_step


@contextmanager
def reading(checkpoint: Path | str) -> Iterator[None]:
    """Within the block whatever cannot be read is a ValueError that names the checkpoint."""
    try:
        yield
    except Exception as error:  # torch, safetensors, pickle and json have their own each
        raise ValueError(
            f"{checkpoint} cannot be read ({one_line(error)}); remove it, and --resume goes on from the one before"
        ) from error


class ResumingTrainer(Trainer):
    """Refuses weights, optimisers and states that are not those of its model and of its step."""

    def read_state(self, checkpoint: Path) -> TrainerState:
        """The state in a checkpoint."""
        with reading(checkpoint):
            state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
            if state.global_step != checkpoint_step(checkpoint):
                raise ValueError(f"{TRAINER_STATE_NAME} is of step {state.global_step!r:.20}")
            values = [value for entry in state.log_history or () for value in entry.values()]
            if not all(isinstance(value, int | float) for value in (state.epoch, state.total_flos, *values)):
                raise ValueError(f"{TRAINER_STATE_NAME} has numbers that are none")
        return state

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        with reading(resume_from_checkpoint):
            super()._load_from_checkpoint(resume_from_checkpoint, model)

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        tied = getattr(self.model, "all_tied_weights_keys", None) or {}  # they are stored once
        names = [*load_result.unexpected_keys, *(name for name in load_result.missing_keys if name not in tied)]
        if names:
            raise ValueError(f"its weights are not those of the model: {', '.join(names[:3])}")

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        with reading(checkpoint):
            optimizer: Any = getattr(self.optimizer, "optimizer", self.optimizer)  # accelerate wraps it
            groups = [dict(group) for group in optimizer.param_groups]
            super()._load_optimizer_and_scheduler(checkpoint)
            check_optimizer(optimizer, groups)
            done = getattr(self.lr_scheduler, "last_epoch", None)
            if done != checkpoint_step(Path(checkpoint)):
                raise ValueError(f"its learning rate is of step {done!r:.20}")

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with reading(str(checkpoint)):
            super()._load_rng_state(checkpoint)
