"""The options of a training run of a classifier: from YAML, from the command line, or from Python."""

import argparse
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from spinformer._base import checks
from spinformer._base.choices import HEADS, registered
from spinformer.training.classifier.options import add_flags, check_types, option, read_yaml

Baseline = Literal["dam", "esim"]
Objective = Literal["plain", "grounded"]
Schedule = Literal["linear", "cosine", "steps", "constant"]
Precision = Literal["auto", "float32", "bfloat16"]
COMPILES = (2, 7)  # torch before it cannot compile encoders of transformers 5
# Options that were removed, each with the one value that stored recipes may still name.
REMOVED: Mapping[str, Any] = {"gate": False, "layers": []}


def pooling_heads() -> tuple[str, ...]:
    """The names of the pooling heads, those of other packages included."""
    return registered(("spinformer.models.pooling",), _registered_heads, HEADS)


def _registered_heads() -> tuple[str, ...]:
    from spinformer.models.pooling import POOLING_HEADS

    return tuple(POOLING_HEADS)


@dataclass(frozen=True)
class ClassifierRecipe:
    """Everything that decides a training run; `spinformer train nli --help` describes each option.

    research/recipes/nli/paper.yaml has the values of NGT section 7.3.
    """

    # what is trained
    encoder: str = option("minilm", "folder, hub id, or short name of a pretrained encoder")
    head: str = option("neurogame", "pooling head on the encoder", choices=pooling_heads)
    baseline: Baseline | None = option(None, "model on word vectors, instead of an encoder and a pooling head")
    vectors: str | None = option(None, "GloVe file of word vectors, for a baseline")
    vector_length: float | None = option(
        None, "length that every word vector is scaled to; by default as in the baseline's paper"
    )
    game: dict[str, Any] = option({}, "options of the NeuroGame layer: preset, heads, samples, temperature ...")
    grounding: dict[str, Any] = option({}, "options of the game head: layers, heads, dim, hidden, readout")
    residual: bool = option(False, "add the first token's vector to the output of the NeuroGame layer")
    classifier_layers: int = option(1, "hidden layers of the classifier")
    dropout: float = option(0.1, "dropout of the classifier")
    encoder_dropout: float | None = option(None, "dropout inside the encoder; by default as in its configuration")
    # on what
    train: str = option("sample:train", "training data: file, name such as snli:train, or several joined by +")
    dev: str = option("sample:dev", "development data, scored after every epoch")
    first: str | None = option(None, "column of the premise or text, if it is not detected")
    second: str | None = option(None, "column of the hypothesis, if it is not detected")
    label: str | None = option(None, "column of the class, if it is not detected")
    names: list[str] = option([], "class names, in order, if they are not detected")
    limit: int | None = option(None, "maximum number of training rows; by default all")
    max_length: int = option(128, "maximum number of tokens of a pair; the longer text is cut first")
    # how
    epochs: int = option(3, "passes over the training data")
    steps: int | None = option(None, "number of updates; it takes the place of epochs")
    batch_size: int = option(32, "pairs in one update, over all processes and accumulation steps together")
    accumulation: int = option(1, "number of parts that the batch of one update is split into")
    learning_rate: float = option(1e-4, "highest learning rate, of AdamW")
    head_factor: float = option(1.0, "the pooling head's learning rate, as a multiple of the encoder's")
    weight_decay: float = option(0.01, "weight decay of weight matrices; biases, norms and gains have none")
    warmup: float = option(0.1, "part of all steps in which the learning rate rises from 0")
    schedule: Schedule = option(
        "linear", "learning rate after the warm-up: linear or cosine to 0, steps at milestones, or constant"
    )
    milestones: list[float] = option([], "epochs after which schedule `steps` multiplies the rate by `factor`")
    factor: float = option(0.1, "factor of schedule `steps`; see milestones")
    clip: float = option(1.0, "maximum norm of the gradient")
    label_smoothing: float = option(0.0, "part of each target that goes to all classes evenly")
    mixup: float = option(0.0, "alpha of mixup's Beta(alpha, alpha) on pooled vectors; 0 for none")
    consistency: float = option(0.0, "weight of R-Drop: two dropout passes of a pair must agree; 0 for none")
    teacher: str | None = option(None, "folder or hub id of a larger classifier to learn from as well")
    teacher_weight: float = option(0.7, "part of a pair's target that is the teacher's answer, the rest its label")
    views: int = option(1, "copies of the data for the teacher to label, all but the first with words changed")
    near: str | None = option(
        None, "encoder that decides which words and texts are similar, for views; by default the one that is trained"
    )
    objective: Objective = option("plain", "grounded: the game head learns what the model answers to parts of texts")
    ground_weight: float = option(1.0, "objective grounded: weight of the game head's error")
    ground_factor: float = option(3.0, "objective grounded: game head's learning rate, as a multiple of the encoder's")
    masked_weight: float = option(0.5, "objective grounded: weight of the cross-entropy on parts of texts")
    whole: float = option(
        0.5, "objective grounded: part of the pairs whose second pass is over the full text, for R-Drop"
    )
    settle: int = option(0, "objective grounded: passes at the end in which only the game head learns")
    ema: float = option(0.0, "decay of the moving average of the weights, which replaces them at the end; 0 for none")
    # the run
    seed: int = option(0, "random seed of weights, order, dropout and coalitions")
    precision: Precision = option("auto", "precision of matrix products; auto is bfloat16 on a GPU that has it")
    save_steps: int | None = option(
        None, "updates between checkpoints to resume from; by default one checkpoint for each epoch; 0 for none"
    )
    log_steps: int = option(50, "updates between log lines")
    workers: int = option(0, "processes that prepare batches")
    compile: bool = option(
        False, "compile the encoder with torch.compile; the first steps are slow, and a C++ compiler is needed"
    )

    def __post_init__(self) -> None:
        check_types(self)
        self._check_numbers()
        self._check_model()
        if self.views > 1 and self.teacher is None:
            raise ValueError(f"views are for a teacher to label, and there is none; got views {self.views}")
        if self.near is not None and self.views == 1:
            raise ValueError(f"near is for views of texts, and there are none; got near {self.near!r} and views 1")
        if (self.schedule == "steps") != bool(self.milestones):
            raise ValueError("schedule 'steps' and milestones go together: give both or neither")

    def _check_numbers(self) -> None:
        minimum = dict.fromkeys(("epochs", "batch_size", "accumulation", "log_steps", "views", "limit", "steps"), 1)
        minimum |= {"max_length": 8, "seed": 0, "save_steps": 0, "workers": 0, "settle": 0, "classifier_layers": 0}
        for name, value in minimum.items():
            if getattr(self, name) is not None:
                checks.at_least(name, getattr(self, name), value)
        for name in ("learning_rate", "head_factor", "ground_factor", "factor", "clip", "vector_length"):
            if getattr(self, name) is not None:
                checks.positive_number(name, getattr(self, name))
        for name in ("dropout", "encoder_dropout", "warmup", "label_smoothing", "ema", "whole"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1); got {value}")
        for name in ("mixup", "consistency", "weight_decay", "ground_weight", "masked_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must not be negative; got {getattr(self, name)}")
        if not 0 <= self.teacher_weight <= 1:
            raise ValueError(f"teacher_weight must be in [0, 1]; got {self.teacher_weight}")

    def _check_model(self) -> None:
        from spinformer.models.pooling import POOLING_HEADS

        if self.baseline is not None:
            if self.head != type(self).head:
                raise ValueError(f"baseline {self.baseline!r} has no pooling head; got head {self.head!r}")
            if self.compile:
                raise ValueError(f"compile is for an encoder, and baseline {self.baseline!r} has none")
            if self.vectors is None:
                raise ValueError(f"baseline {self.baseline!r} needs `vectors`, a GloVe file of word vectors")
        own = version("torch")
        if self.compile and tuple(map(int, own.split(".")[:2])) < COMPILES:
            raise ValueError(f"compile needs torch {COMPILES[0]}.{COMPILES[1]} or newer; got {own}")
        if (self.objective == "grounded") != POOLING_HEADS[self.head].has_game_head:
            raise ValueError(
                "objective 'grounded' and a pooling head with a game head, such as 'grounded', go together; got "
                f"objective {self.objective!r} and head {self.head!r}"
            )
        if self.objective != "grounded" and self.settle:
            raise ValueError("settle is an option of objective 'grounded'")
        if self.objective == "grounded" and self.mixup:
            raise ValueError("objective 'grounded' masks words of texts, which mixup cannot mix: leave mixup at 0")

    @classmethod
    def read(cls, path: Path | str) -> "ClassifierRecipe":
        """From a YAML file; `base: other.yaml` in it, relative to it, is read first."""
        checks.instance("path", path, str, Path)
        return cls.of(read_yaml(Path(path)), source=str(path))

    @classmethod
    def of(cls, options: Mapping[str, Any], source: str = "options", *, stored: bool = False) -> "ClassifierRecipe":
        """From a mapping; a name that is no option is an error that lists the options.

        stored: whether the mapping is the recipe of an earlier run, as recipe.json and training.json keep it: options
        that have been removed since are then left out if they had their default, and otherwise an error.
        """
        from spinformer.models.removed import LAST_COMMIT, drop_removed

        if not isinstance(options, Mapping):
            raise TypeError(f"{source}: expected options by their names; got {type(options).__name__}")
        if stored:
            options = drop_removed(options, **REMOVED)
            if options.get("head") in ("dam", "esim"):  # as they were called before they had an option of their own
                options = {**options, "head": cls.head, "baseline": options["head"]}
        removed = sorted(set(options) & set(REMOVED))
        if removed:
            names = ", ".join(removed)
            raise ValueError(f"{source}: removed option(s) {names}; commit {LAST_COMMIT} was the last that had them")
        known = [one.name for one in fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise ValueError(f"{source}: unknown option(s) {', '.join(unknown)}; there are: {', '.join(known)}")
        return cls(**options)

    def change(self, **options: Any) -> "ClassifierRecipe":
        """The same with these options changed."""
        return replace(self, **options)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML and JSON."""
        return asdict(self)


def configure(parser: argparse._ActionsContainer) -> None:
    """One flag for each option of `ClassifierRecipe`; options that are not given stay as the recipe file has them."""
    add_flags(parser, ClassifierRecipe)
