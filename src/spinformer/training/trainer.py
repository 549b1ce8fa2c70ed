"""The Hugging Face Trainer with what our recipes add: averaging, mixup, consistency, diagnostics, safe checkpoints."""

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
from transformers import ProgressCallback, Trainer, TrainerState, TrainingArguments
from transformers.trainer import TRAINER_STATE_NAME

from spinformer.data.features import Collate, Features, LengthSampler
from spinformer.models.hidden import encoder
from spinformer.models.neurogame.heads import by_head
from spinformer.training.average import Average
from spinformer.training.meter import Bar, Meter
from spinformer.training.recipe import Recipe
from spinformer.training.schedule import schedule
from spinformer.training.steps import Steps
from spinformer.training.together import disagreement, together
from spinformer.whole import whole

# Written last into a checkpoint, with the seconds so far: without it the folder is what a killed process left behind.
COMPLETE = "complete"
TILE = 8


class ClassifierTrainer(Trainer):
    """loss = (1 - e) CE(o, y) + e mean_c CE(o, c)  [label smoothing e], on mixed pairs where mixup is on,
    + w (KL(p || q) + KL(q || p)) / 2  [consistency w, between two dropout passes of the same pair]; where a model
    has several heads, CE is the mean over them, and the passes agree in the model's answer.
    """

    def __init__(
        self, model: nn.Module, recipe: Recipe, args: TrainingArguments, train: Features, dev: Features, tokenizer: Any
    ) -> None:
        self.recipe, self.network, self.rows = recipe, model, train
        self.begun, self.before = time.perf_counter(), 0.0  # before: seconds of the run that this one goes on with
        self.meter = Meter()
        accepted = inspect.signature(model.forward).parameters
        self.plays, self.mixes = bool(getattr(model, "plays", False)), "mix" in accepted
        if recipe.mixup and not self.mixes:
            raise ValueError(f"mixup is for heads on an encoder; {type(model).__name__} cannot mix")
        # GPUs are quickest where lengths are multiples of TILE; none may be longer than the encoder takes.
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
        self.average = Average(model, recipe.ema) if recipe.ema else None  # where the model has been moved to
        self.model_accepts_loss_kwargs = False  # the loss is a mean over the rows of a batch
        self.add_callback(Steps(self))
        if not args.disable_tqdm:
            self.remove_callback(ProgressCallback)
            self.add_callback(Bar())

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
            targets = functional.one_hot(labels, model_labels(model)).float()
        if recipe.objective == "grounded":
            loss, outputs, apart = together(model, recipe, inputs, targets)
            self.meter.add(outputs.logits[: len(targets)].float(), targets, None, apart=apart)
        else:
            loss, outputs = self._plain(model, inputs, targets)
        return (loss, outputs) if return_outputs else loss

    def _plain(self, model: nn.Module, inputs: dict[str, Any], targets: Tensor) -> tuple[Tensor, Any]:
        """Cross-entropy, with mixup and consistency where the recipe has them."""
        recipe = self.recipe
        extra: dict[str, Any] = {"output_game": True} if self.plays else {}
        if recipe.consistency:
            inputs = {name: torch.cat([value, value]) for name, value in inputs.items()}
            targets = torch.cat([targets, targets])
        if recipe.mixup:
            order, weight = self._mixing(len(targets), targets.device, copies=2 if recipe.consistency else 1)
            targets = torch.lerp(targets[order], targets, weight)
            extra["mix"] = (order, weight)
        outputs = model(**inputs, **extra)
        logits = outputs.logits.float()
        rows = by_head(logits, getattr(outputs, "each", None), targets)
        loss = functional.cross_entropy(*rows, label_smoothing=recipe.label_smoothing)
        if recipe.consistency:
            loss = loss + recipe.consistency * disagreement(*logits.chunk(2)).mean()
        game = getattr(outputs, "game", None)
        self.meter.add(logits, targets, None if game is None else game.diagnostics)
        return loss, outputs

    def _mixing(self, rows: int, device: torch.device, copies: int) -> tuple[Tensor, Tensor]:
        """A partner for each row and the weight of the row itself; copies of a pair mix alike."""
        alpha = torch.tensor(self.recipe.mixup)
        weight = torch.distributions.Beta(alpha, alpha).sample()
        part = rows // copies
        order = torch.randperm(part)
        return torch.cat([order + copy * part for copy in range(copies)]).to(device), weight.to(device)

    def create_optimizer(self, model: nn.Module | None = None) -> Optimizer:
        """AdamW; decay on matrices alone; the head at `head_factor` times the encoder's rate, a game at
        `ground_factor` times the encoder's."""
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
                fused=self.args.device.type == "cuda",
            )
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Optimizer | None = None) -> LambdaLR:
        """The recipe's."""
        if self.lr_scheduler is None:
            recipe = self.recipe
            self.lr_scheduler = schedule(
                optimizer or self.create_optimizer(),
                recipe.schedule,
                num_training_steps,
                warmup=recipe.warmup,
                milestones=recipe.milestones,
                factor=recipe.factor,
                steps_per_epoch=self.updates,
            )
        return self.lr_scheduler

    def _get_train_sampler(self, train_dataset: Dataset[Any] | None = None) -> Sampler[int]:
        self.sampler = LengthSampler(self.rows.lengths, self.recipe.batch_size, self.recipe.seed)
        return self.sampler

    def go_on(self, checkpoint: Path | None) -> None:
        """Train to the end, from a checkpoint where there is one."""
        if checkpoint is not None:
            self.before = float((checkpoint / COMPLETE).read_text())
            if self.average is not None:
                self.average.load(checkpoint)
        if checkpoint is None or self.recipe.steps is None or step_of(checkpoint) < self.recipe.steps:
            self.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        else:  # no update is left; a Trainer that is resumed makes one nevertheless
            self._load_from_checkpoint(str(checkpoint))
            self.state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))

    @property
    def updates(self) -> int:
        """Of an epoch."""
        return len(self.rows) // self.recipe.batch_size

    @property
    def seconds(self) -> float:
        """That training has taken, with what came before it was resumed."""
        return self.before + time.perf_counter() - self.begun

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """With the averaged weights, where there are any; it draws no random number that training would have drawn, and
        is not worth compiling for."""
        averaged = nullcontext() if self.average is None else self.average.applied()
        with averaged, torch.random.fork_rng(devices=[]), uncompiled(self.recipe):
            return super().evaluate(*args, **kwargs)

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """The loss over each row once; Hugging Face counts the rows twice that fill up the last batch of a process."""
        found = super().evaluation_loop(*args, **kwargs)
        logits, labels = torch.as_tensor(found.predictions).float(), torch.as_tensor(found.label_ids)
        loss = float(functional.cross_entropy(logits, labels))
        return found._replace(metrics={**(found.metrics or {}), "eval_loss": loss})

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """With accuracy, effective sample size and residual of the steps since the last line."""
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
            with whole(folder / COMPLETE) as partial:
                partial.write_text(f"{self.seconds}\n")


def step_of(checkpoint: Path) -> int:
    """The update after which it was written."""
    return int(checkpoint.name.rpartition("-")[2])


def uncompiled(recipe: Recipe) -> AbstractContextManager[Any]:
    """Within, an encoder that was compiled runs as it did before."""
    return torch.compiler.set_stance("force_eager") if recipe.compile else nullcontext()


def model_labels(model: nn.Module) -> int:
    """Classes of a classifier, wrapped for several processes or not."""
    inner: Any = getattr(model, "module", model)
    return int(inner.config.num_labels)


def _accuracy(prediction: Any) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}
