"""One set of options for training a classifier: from YAML, from the command line, or from Python."""

import argparse
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from spinformer import checks
from spinformer.extras import require

Head = Literal["neurogame", "grounded", "cls", "mean", "attention", "released", "joint", "dam", "esim"]
Objective = Literal["plain", "grounded"]
Schedule = Literal["linear", "cosine", "steps", "constant"]
Precision = Literal["auto", "float32", "bfloat16"]
# Heads that bring their own encoder of words.
WORD_HEADS = ("dam", "esim")


def _option(default: Any, text: str) -> Any:
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata={"help": text})
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a training run; `spinformer train nli --help` describes each option."""

    # what is trained
    encoder: str = _option("minilm", "folder, hub id, or short name of a pretrained encoder")
    head: Head = _option("neurogame", "what stands on the encoder; dam and esim are models of their own, on `vectors`")
    vectors: str | None = _option(None, "GloVe file for the heads dam and esim")
    vector_length: float | None = _option(
        None, "length that every word vector is scaled to; by default the model's own"
    )
    game: dict[str, Any] = _option({}, "options of the NeuroGame layer: preset, heads, samples, temperature ...")
    grounding: dict[str, Any] = _option({}, "options of the head grounded: layers, heads, dim, hidden, readout")
    residual: bool = _option(False, "add the first token's vector to the game's output")
    layers: list[int] = _option(
        [], "layers below the encoder's last, from 0, the embeddings, that the head reads as well"
    )
    classifier_layers: int = _option(1, "hidden layers of the classifier")
    dropout: float = _option(0.1, "dropout of the classifier")
    encoder_dropout: float | None = _option(None, "dropout inside the encoder, where not its own")
    # on what
    train: str = _option("sample:train", "training data: file, name such as snli:train, or several joined by +")
    dev: str = _option("sample:dev", "data to choose on, scored after every epoch")
    first: str | None = _option(None, "column of the premise or text, where it is not detected")
    second: str | None = _option(None, "column of the hypothesis, where it is not detected")
    label: str | None = _option(None, "column of the class, where it is not detected")
    names: list[str] = _option([], "class names, in order, where they are not detected")
    limit: int | None = _option(None, "use only so many training rows")
    max_length: int = _option(128, "tokens kept of a pair; the longer text is cut first")
    # how
    epochs: int = _option(3, "passes over the training data")
    steps: int | None = _option(None, "updates in all, in place of so many epochs")
    batch_size: int = _option(32, "pairs in one update, over all processes and accumulation steps together")
    accumulation: int = _option(1, "parts that each update's batch is computed in")
    learning_rate: float = _option(1e-4, "highest learning rate, of AdamW")
    head_factor: float = _option(1.0, "the head's learning rate over the encoder's")
    weight_decay: float = _option(0.01, "of weight matrices; never of biases, norms and gains")
    warmup: float = _option(0.1, "part of all steps in which the learning rate rises from 0")
    schedule: Schedule = _option(
        "linear", "what follows: fall to 0 in a line or a cosine, steps at milestones, or none"
    )
    milestones: list[float] = _option([], "epochs after which schedule `steps` multiplies the rate by `factor`")
    factor: float = _option(0.1, "see milestones")
    clip: float = _option(1.0, "longest gradient")
    label_smoothing: float = _option(0.0, "part of each target that goes to all classes evenly")
    mixup: float = _option(0.0, "alpha of mixup's Beta(alpha, alpha) on pooled vectors; 0 for none")
    consistency: float = _option(0.0, "weight of R-Drop: two dropout passes of a pair must agree; 0 for none")
    teacher: str | None = _option(None, "folder or hub id of a larger classifier to learn from as well")
    teacher_weight: float = _option(0.7, "part of a pair's target that is the teacher's answer, the rest its label")
    views: int = _option(1, "copies of the data for the teacher to label, all but the first with words changed")
    near: str | None = _option(
        None, "encoder by whose reading views take near words and texts, where not the one that is trained"
    )
    objective: Objective = _option("plain", "grounded: the head's game learns what the model says of parts of texts")
    ground_weight: float = _option(1.0, "of the game's error in objective grounded")
    ground_factor: float = _option(3.0, "the game's learning rate over the encoder's in objective grounded")
    masked_weight: float = _option(0.5, "of the cross-entropy on parts of texts in objective grounded")
    whole: float = _option(
        0.5, "part of objective grounded's pairs that are not seen in part, but whole again, for R-Drop"
    )
    gate: bool = _option(False, "objective grounded: parts of texts are drawn by the attention of the game itself")
    settle: int = _option(0, "objective grounded: passes at the end in which the game learns on, and nothing else")
    ema: float = _option(0.0, "decay of the moving average of the weights that is kept; 0 for none")
    # the run
    seed: int = _option(0, "of weights, order, dropout and coalitions")
    precision: Precision = _option("auto", "of matrix products; auto is bfloat16 on a GPU that has it")
    save_steps: int | None = _option(
        None, "updates between checkpoints to resume from; by default one an epoch; 0 for none"
    )
    log_steps: int = _option(50, "updates between log lines")
    workers: int = _option(0, "processes that prepare batches")
    compile: bool = _option(
        False, "let torch compile the encoder; the first steps wait for it, and it needs a compiler of C or C++"
    )

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for option in fields(self):
            object.__setattr__(self, option.name, _typed(option.name, getattr(self, option.name), hints[option.name]))
        least = dict.fromkeys(("epochs", "batch_size", "accumulation", "log_steps", "views", "limit", "steps"), 1)
        least |= {"max_length": 8, "seed": 0, "save_steps": 0, "workers": 0, "settle": 0}
        for name, smallest in least.items():
            if getattr(self, name) is not None:
                checks.at_least(name, getattr(self, name), smallest)
        for name in ("learning_rate", "head_factor", "ground_factor", "factor", "clip", "vector_length"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
        for name in ("dropout", "encoder_dropout", "warmup", "label_smoothing", "ema", "whole"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{name} must be in [0, 1); got {value}")
        for name in ("mixup", "consistency", "weight_decay", "ground_weight", "masked_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must not be negative; got {getattr(self, name)}")
        if not 0 <= self.teacher_weight <= 1:
            raise ValueError(f"teacher_weight must be in [0, 1]; got {self.teacher_weight}")
        if (self.objective == "grounded") != (self.head == "grounded"):
            raise ValueError(
                f"objective 'grounded' and head 'grounded' go together; got objective {self.objective!r} and head "
                f"{self.head!r}"
            )
        if self.objective != "grounded" and (self.gate or self.settle):
            raise ValueError("gate and settle are options of objective 'grounded'")
        if self.objective == "grounded" and self.mixup:
            raise ValueError("objective 'grounded' takes texts apart, which mixup cannot mix: leave mixup at 0")
        if self.views > 1 and self.teacher is None:
            raise ValueError(f"views are for a teacher to label, and there is none; got views {self.views}")
        if self.near is not None and self.views == 1:
            raise ValueError(f"near is for views of texts, and there are none; got near {self.near!r} and views 1")
        if self.head in WORD_HEADS and self.layers:
            raise ValueError(f"layers are those of an encoder, and head {self.head!r} has none; got {self.layers}")
        if self.head in WORD_HEADS and self.compile:
            raise ValueError(f"compile is for an encoder, and head {self.head!r} has none")
        if self.head in WORD_HEADS and self.vectors is None:
            raise ValueError(f"head {self.head!r} needs `vectors`, a GloVe file of word vectors")
        if (self.schedule == "steps") != bool(self.milestones):
            raise ValueError("schedule 'steps' and milestones go together: give both or neither")

    @classmethod
    def read(cls, path: Path | str) -> "Recipe":
        """From a YAML file; `base: other.yaml` in it, relative to it, is read first."""
        return cls.of(read_yaml(Path(path)), source=str(path))

    @classmethod
    def of(cls, options: Mapping[str, Any], source: str = "options") -> "Recipe":
        """From a mapping; a name that is no option is an error that names the nearest."""
        known = [option.name for option in fields(cls)]
        unknown = sorted(set(options) - set(known))
        if unknown:
            raise ValueError(f"{source}: unknown option(s) {', '.join(unknown)}; there are: {', '.join(known)}")
        return cls(**options)

    def change(self, **options: Any) -> "Recipe":
        """The same with these options changed."""
        return replace(self, **options)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for YAML and JSON."""
        return asdict(self)


def configure(parser: argparse._ActionsContainer) -> None:
    """One flag for each option of `Recipe`; those not given stay as the recipe file has them."""
    hints = get_type_hints(Recipe)
    defaults = Recipe()
    for option in fields(Recipe):
        flag, kind = "--" + option.name.replace("_", "-"), _plain(hints[option.name])
        text = f"{option.metadata['help']} (default {getattr(defaults, option.name)})".replace("%", "%%")
        common: dict[str, Any] = {"dest": option.name, "default": argparse.SUPPRESS, "help": text}
        if kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
        elif get_origin(kind) is Literal:
            parser.add_argument(flag, choices=get_args(kind), **common)
        elif get_origin(kind) is list:
            parser.add_argument(flag, nargs="+", type=get_args(kind)[0], metavar="X", **common)
        elif get_origin(kind) is dict:
            parser.add_argument(flag, type=_json, metavar="JSON", **common)
        else:
            parser.add_argument(flag, type=kind, metavar=kind.__name__.upper(), **common)


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object such as '{{\"heads\": 4}}'; got {text!r}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object; got {text!r}")
    return value


def read_yaml(path: Path, seen: tuple[Path, ...] = (), *, bases: bool = True) -> dict[str, Any]:
    """The options of a recipe file; with those of its base beneath them where `bases` is true."""
    yaml = require("yaml", extra="nli")
    if not path.is_file():
        raise FileNotFoundError(f"no recipe {path}")
    if path.resolve() in seen:
        raise ValueError(f"{path}: its bases go round in a circle")
    try:
        options = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    if options is None:  # nothing but comments
        options = {}
    if not isinstance(options, dict):
        raise ValueError(f"{path}: expected `option: value` lines; got {type(options).__name__}")
    base = options.pop("base", None)
    if base is None or not bases:
        return options
    if not isinstance(base, str):
        raise ValueError(f"{path}: base must be a file name; got {base!r}")
    return {**read_yaml(path.parent / base, (*seen, path.resolve())), **options}


def _plain(kind: Any) -> Any:
    """X of X | None."""
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not type(None))
    return kind


def _typed(name: str, value: Any, kind: Any) -> Any:
    """`value` as `kind`, where that is no guess: YAML reads 3e-5 as text and 1 as an integer."""
    if value is None and type(None) in get_args(kind):
        return None
    kind = _plain(kind)
    if get_origin(kind) is Literal:
        checks.choice(name, value, get_args(kind))
        return value
    if get_origin(kind) is list:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{name} must be a list; got {value!r}")
        return [_typed(name, item, get_args(kind)[0]) for item in value]
    if get_origin(kind) is dict:
        kind = dict
    if kind is float and isinstance(value, str | int) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ValueError(f"{name} must be {kind.__name__}; got {value!r}")
    return value
