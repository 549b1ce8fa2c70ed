"""The Hugging Face Trainer with what recipes add: averaging, mixup, consistency, diagnostics, atomic checkpoints."""
# ruff: noqa: E402

import inspect
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import Dataset, Sampler

from spinformer._base.extras import require

require("transformers", extra="nli")
require("accelerate", extra="nli")

from transformers import PrinterCallback, ProgressCallback, TrainingArguments

from spinformer.data.features import Collate, Features, LengthSampler
from spinformer.models.hidden_states import encoder
from spinformer.models.pooling import loss_rows
from spinformer.training.classifier.callbacks import ProgressBar, UpdateCallback
from spinformer.training.classifier.checkpoints import checkpoint_step, earlier_seconds, mark_complete
from spinformer.training.classifier.grounded_objective import disagreement, grounded_loss
from spinformer.training.classifier.meter import Meter
from spinformer.training.classifier.recipe import ClassifierRecipe
from spinformer.training.classifier.resuming import ResumingTrainer, reading
from spinformer.training.classifier.weight_average import WeightAverage
from spinformer.training.schedule import schedule

TILE = 8  # GPUs are fastest if the number of tokens is a multiple of this


class ClassifierTrainer(ResumingTrainer):
    """loss = (1 - e) CE(o, y) + e mean_c CE(o, c) + w (KL(p || q) + KL(q || p)) / 2

    o: the logits; y: the target, mixed with another pair's under mixup; e: label smoothing; w: consistency, with p and
    q two passes of the same pair under different dropout. If the pooling head has several parts, CE is the mean over
    them, and p and q are the answers of the full model. NGT section 7.3: e = 0.1, w = 0, mixup with alpha = 0.2.
    The objective `grounded` has a loss of its own (`grounded_loss`).
    """

    def __init__(
        self,
        model: nn.Module,
        recipe: ClassifierRecipe,
        args: TrainingArguments,
        train: Features,
        dev: Features,
        tokenizer: Any,
    ) -> None:
        self.recipe, self.network, self.rows = recipe, model, train
        self.start, self.earlier_seconds = time.perf_counter(), 0.0  # earlier: of the run that this one resumes
        self.meter = Meter()
        accepted = inspect.signature(model.forward).parameters
        self.plays = bool(getattr(model, "plays", False))
        if recipe.mixup and "mix" not in accepted:
            raise ValueError(f"mixup is for pooling heads on an encoder; {type(model).__name__} cannot mix")
        multiple = TILE if args.device.type == "cuda" and recipe.max_length % TILE == 0 else 1
        super().__init__(
            model=model,
            args=args,
            train_dataset=train,
            eval_dataset=dev,
            data_collator=Collate(tokenizer, multiple),
            processing_class=tokenizer,
            compute_metrics=_accuracy,
        )
        if recipe.compile:
            encoder(model).compile(dynamic=True)
        self.average = WeightAverage(model, recipe.ema) if recipe.ema else None  # after the model was moved
        self.model_accepts_loss_kwargs = False  # the loss is a mean over the rows of a batch
        self.add_callback(UpdateCallback(self))
        self.remove_callback(PrinterCallback if args.disable_tqdm else ProgressCallback)
        if not args.disable_tqdm:
            self.add_callback(ProgressBar())

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The loss above in training, plain cross-entropy in evaluation."""
        inputs = dict(inputs)
        labels, targets = inputs.pop("labels"), inputs.pop("targets", None)
        recipe = self.recipe
        if not model.training:
            outputs = model(**inputs)
            loss = functional.cross_entropy(outputs.logits.float(), labels)
            return (loss, outputs) if return_outputs else loss
        if targets is None:
            targets = functional.one_hot(labels, class_count(model)).float()
        if recipe.objective == "grounded":
            loss, outputs, divergence = grounded_loss(model, recipe, inputs, targets)
            self.meter.add(outputs.logits[: len(targets)].float(), targets, None, apart=divergence)
        else:
            loss, outputs = self._plain_loss(model, inputs, targets)
        return (loss, outputs) if return_outputs else loss

    def _plain_loss(self, model: nn.Module, inputs: dict[str, Any], targets: Tensor) -> tuple[Tensor, Any]:
        """Cross-entropy, with mixup and consistency if the recipe has them."""
        recipe = self.recipe
        extra: dict[str, Any] = {"output_diagnostics": True} if self.plays else {}
        if recipe.consistency:
            inputs = {name: torch.cat([value, value]) for name, value in inputs.items()}
            targets = torch.cat([targets, targets])
        if recipe.mixup:
            order, weight = self._mixup_partners(len(targets), targets.device, copies=2 if recipe.consistency else 1)
            targets = torch.lerp(targets[order], targets, weight)
            extra["mix"] = (order, weight)
        outputs = model(**inputs, **extra)
        logits = outputs.logits.float()
        rows = loss_rows(logits, getattr(outputs, "head_logits", None), targets)
        loss = functional.cross_entropy(*rows, label_smoothing=recipe.label_smoothing)
        if recipe.consistency:
            loss = loss + recipe.consistency * disagreement(*logits.chunk(2)).mean()
        self.meter.add(logits, targets, getattr(outputs, "diagnostics", None))
        return loss, outputs

    def _mixup_partners(self, rows: int, device: torch.device, copies: int) -> tuple[Tensor, Tensor]:
        """A partner for each row, and the weight of the row itself; copies of a pair have copies of one partner."""
        alpha = torch.tensor(self.recipe.mixup)
        weight = torch.distributions.Beta(alpha, alpha).sample()
        part = rows // copies
        order = torch.randperm(part)
        return torch.cat([order + copy * part for copy in range(copies)]).to(device), weight.to(device)

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        """AdamW with weight decay on matrices alone.

        The learning rate of the pooling head is `head_factor` times the encoder's, that of a game head `ground_factor`
        times.
        """
        if self.optimizer is None:
            recipe = self.recipe
            groups: dict[tuple[float, bool], list[Tensor]] = {}
            for name, parameter in self.network.named_parameters():
                if parameter.requires_grad:
                    factor = recipe.ground_factor if name.startswith("game.") else recipe.head_factor
                    key = (1.0 if ".encoder." in f".{name}" else factor, parameter.dim() > 1)
                    groups.setdefault(key, []).append(parameter)
            self.optimizer = AdamW(
                [
                    {
                        "params": parameters,
                        "lr": recipe.learning_rate * factor,
                        "weight_decay": recipe.weight_decay if matrix else 0.0,
                    }
                    for (factor, matrix), parameters in groups.items()
                ],
                lr=recipe.learning_rate,
                fused=self.args.device.type in ("cpu", "cuda"),
            )
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Optimizer | None = None) -> LambdaLR:
        """The learning rate by the recipe's schedule."""
        if self.lr_scheduler is None:
            recipe = self.recipe
            self.lr_scheduler = schedule(
                optimizer or self.create_optimizer(),
                recipe.schedule,
                num_training_steps,
                warmup=recipe.warmup,
                milestones=recipe.milestones,
                factor=recipe.factor,
                steps_per_epoch=self.updates_per_epoch,
            )
        return self.lr_scheduler

    def _get_train_sampler(self, train_dataset: Dataset[Any] | None = None) -> Sampler[int]:
        self.sampler = LengthSampler(self.rows.lengths, self.recipe.batch_size, self.recipe.seed)
        return self.sampler

    def train_from(self, checkpoint: Path | None) -> None:
        """Train to the end, from a checkpoint if there is one."""
        if checkpoint is not None:
            self.earlier_seconds = earlier_seconds(checkpoint)
            state = self.read_state(checkpoint)
            if self.average is not None:
                with reading(checkpoint):
                    self.average.load(checkpoint)
        if checkpoint is None or self.recipe.steps is None or checkpoint_step(checkpoint) < self.recipe.steps:
            self.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        else:  # no update is left, but a resumed Trainer would make one
            self._load_from_checkpoint(str(checkpoint))
            self.state = state

    @property
    def updates_per_epoch(self) -> int:
        """The number of full batches."""
        return len(self.rows) // self.recipe.batch_size

    @property
    def seconds(self) -> float:
        """What training has taken so far, the time before it was resumed included."""
        return self.earlier_seconds + time.perf_counter() - self.start

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """With the averaged weights, if there are any; random numbers of training are not used up."""
        averaged = nullcontext() if self.average is None else self.average.swap_in()
        with averaged, torch.random.fork_rng(devices=[]), compile_disabled(self.recipe):
            return super().evaluate(*args, **kwargs)

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """As in Trainer, with a loss that counts each row once: Trainer repeats rows to fill the last batch."""
        result = super().evaluation_loop(*args, **kwargs)
        logits, labels = torch.as_tensor(result.predictions).float(), torch.as_tensor(result.label_ids)
        loss = float(functional.cross_entropy(logits, labels))
        return result._replace(metrics={**(result.metrics or {}), "eval_loss": loss})

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add accuracy, effective sample size and residual since the last line.

        Trainer's totals at the end are left out: those of a resumed run are of its last part alone.
        """
        if "train_runtime" in logs:
            return
        if "loss" in logs:
            logs = {**logs, **self.meter.read(self.accelerator)}
        super().log(logs, start_time)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        self.accelerator.wait_for_everyone()  # every process has written its part
        if self.args.should_save:
            folder = Path(str(self.args.output_dir)) / f"checkpoint-{self.state.global_step}"
            if self.average is not None:
                self.average.save(folder)
            mark_complete(folder, self.seconds)


def compile_disabled(recipe: ClassifierRecipe) -> AbstractContextManager[Any]:
    """Within the block a compiled encoder runs eagerly."""
    return torch.compiler.set_stance("force_eager") if recipe.compile else nullcontext()


def class_count(model: nn.Module) -> int:
    """The number of classes of a classifier, wrapped for several processes or not."""
    inner: Any = getattr(model, "module", model)
    return int(inner.config.num_labels)


def _accuracy(prediction: Any) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}
