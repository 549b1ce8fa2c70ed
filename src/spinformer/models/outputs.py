"""What the numbers that a model puts out mean, and which of them is explained.

    classes   one of several:      a_c = softmax(o)_c, the probability of class c
    labels    several at once:     a_c = sigmoid(o_c), the probability that label c is on
    scores    numbers:             a_c = o_c

o: the model's logits; a: its answers. A game is played for one answer, v(C) = a_y(C), or for one against another,
v(C) = a_y(C) - a_z(C).
"""

from typing import Any

from torch import Tensor

from spinformer._base import checks
from spinformer._base.outputs import Outputs

# What transformers calls them in `config.problem_type`.
PROBLEM_TYPES: dict[str, Outputs] = {
    "single_label_classification": "classes",
    "multi_label_classification": "labels",
    "regression": "scores",
}


def config_of(model: Any) -> Any:
    """The configuration of a classifier; a TypeError where the model has none, as no Hugging Face model is."""
    config = getattr(model, "config", None)
    if config is None:
        raise TypeError(f"expected a sequence classifier; got {type(model).__name__}")
    return config


def logits_of(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    """One pass: the logits, (B, C)."""
    return logits_in(model(**inputs), model)


def logits_in(output: Any, model: Any) -> Tensor:
    """The logits, (B, C), in what a model puts out; an error where they are not those of a sequence classifier."""
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor) or logits.dim() != 2:
        raise TypeError(f"expected a sequence classifier; got {type(model).__name__}")
    count = getattr(getattr(model, "config", None), "num_labels", None)
    if isinstance(count, int) and count != logits.shape[1]:
        raise ValueError(f"config.id2label must name the model's {logits.shape[1]} outputs; it names {count}")
    return logits


def outputs_of(model: Any) -> Outputs:
    """What a model's outputs are, by its configuration; where that does not say, one output is a score.

    A ValueError where the configuration has no outputs.
    """
    config = getattr(model, "config", None)
    count = int(getattr(config, "num_labels", 0) or 0)
    if config is not None and count < 1:
        raise ValueError(f"expected a model with at least 1 output; got {count}")
    kind = getattr(config, "problem_type", None)
    if kind in PROBLEM_TYPES:
        return PROBLEM_TYPES[kind]
    return "scores" if count == 1 else "classes"


def output_names(model: Any) -> list[str]:
    """The names of the outputs, in the order of the logits; a score without a name of its own is "score".

    They are all different: outputs of one name have their numbers behind it, "a (0)" and "a (1)".
    """
    config = config_of(model)
    given = [str(config.id2label[index]) for index in sorted(config.id2label)]
    numbered = [f"{name} ({index})" for index, name in enumerate(given)]
    names = [own if given.count(name) > 1 else name for name, own in zip(given, numbered, strict=True)]
    names = names if len(set(names)) == len(names) else numbered  # a name may look as if it were numbered
    return ["score"] if names == ["LABEL_0"] and outputs_of(model) == "scores" else names


def answers_of(logits: Tensor, outputs: Outputs) -> Tensor:
    """a, from logits (..., C), in float32."""
    logits = logits.float()
    if outputs == "classes":
        return logits.softmax(-1)
    return logits.sigmoid() if outputs == "labels" else logits


def offsets_of(logits: Tensor, outputs: Outputs) -> Tensor:
    """Numbers o with a = answers_of(o): the logits, for classes so normalised that a = exp(o)."""
    return logits.float().log_softmax(-1) if outputs == "classes" else logits.float()


def value_of(answers: Tensor, target: Tensor) -> Tensor:
    """v of answers (B, ..., C): a_y, (B, ...), for target y, (B,); a_y - a_z for targets (y, z), (B, 2)."""
    if target.dim() == 2:
        first, second = target.unbind(1)
        return value_of(answers, first) - value_of(answers, second)
    index = target.to(answers.device).view(-1, *[1] * (answers.dim() - 1))
    return answers.gather(-1, index.expand(*answers.shape[:-1], 1)).squeeze(-1)


def check_target(target: Tensor, batch: int) -> None:
    """A ValueError unless it names an output, or one against another, of each of so many texts."""
    checks.instance("target", target, Tensor)
    if tuple(target.shape) not in ((batch,), (batch, 2)):
        raise ValueError(f"target must have shape ({batch},) or ({batch}, 2); got {tuple(target.shape)}")
