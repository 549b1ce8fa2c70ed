"""How a model's classes are scored against a data set's.

by name     the same names in any order, whatever their case
two-class   entailment against all others: for data with the classes entailment and non-entailment (HANS), and for data
            in which only entailment and neutral occur (MoNLI). A prediction is the model's most probable class, and all
            but entailment count as non-entailment; the probability of non-entailment is the sum over the others.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer.data.texts import Texts

ENTAILMENT, OTHER = "entailment", "non-entailment"
TWO_CLASS = (ENTAILMENT, OTHER)
OTHERS = frozenset({"neutral", "contradiction", OTHER})


@dataclass(frozen=True)
class ClassMapping:
    """names: the classes that are scored; groups: for each of them, the model's classes that count as it; gold: for
    each class of the data, the scored class that it counts as; rule: 'by name' or 'two-class'.
    """

    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    gold: tuple[int, ...]
    rule: str

    def logits(self, logits: Tensor) -> Tensor:
        """log of the summed exponentials of each group, in float64: its softmax is the groups' probabilities."""
        wide = logits.double()
        return torch.stack([wide[:, list(group)].logsumexp(1) for group in self.groups], dim=1)

    def predicted(self, logits: Tensor) -> Tensor:
        """The group that holds the model's largest class; not always the most probable group."""
        group_of = {column: index for index, group in enumerate(self.groups) for column in group}
        table = torch.tensor([group_of[column] for column in range(len(group_of))])
        return table[logits.argmax(1).cpu()]

    def labels(self, labels: Sequence[int]) -> Tensor:
        """The data's labels as positions in `names`."""
        return torch.tensor(self.gold)[torch.as_tensor(labels, dtype=torch.long)]


def class_names(model: Any, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """The model's class names, in the order of its logits: `given`, or else those of its configuration."""
    known = getattr(getattr(model, "config", None), "id2label", None)
    if not isinstance(known, Mapping):
        raise TypeError(f"model must have a configuration with its class names, id2label; got {type(model).__name__}")
    if given is not None:
        checks.items("names", given, str)
    names = tuple(str(known[index]) for index in sorted(known)) if given is None else tuple(given)
    if len(names) != len(known):
        raise ValueError(f"the model has {len(known)} classes; got {len(names)} label names: {', '.join(names)}")
    if len(names) < 2:
        raise ValueError("the model must have at least two classes; it has one output, as for a regression")
    if len({_key(name) for name in names}) < len(names):
        raise ValueError(f"the model's classes must have different names; got {', '.join(names)}")
    return names


def map_classes(model: Sequence[str], texts: Texts) -> ClassMapping:
    """How to score a model with these classes on `texts`."""
    checks.items("model", model, str)
    checks.instance("texts", texts, Texts)
    if texts.labels is None or not len(texts):
        raise ValueError(f"{texts.source} has no {'rows' if texts.labels is not None else 'labels'} to score against")
    of_model, of_data = [_key(name) for name in model], [_key(name) for name in texts.names]
    occurring = {of_data[label] for label in set(texts.labels)}
    entails = ENTAILMENT in of_model and len(of_model) > 1 and set(of_model) - {ENTAILMENT} <= OTHERS
    if entails and occurring == {ENTAILMENT, "neutral"}:
        return _two_class(of_model, of_data, TWO_CLASS)
    if sorted(of_model) == sorted(of_data):
        groups = tuple((of_model.index(name),) for name in of_data)
        return ClassMapping(tuple(texts.names), groups, tuple(range(len(of_data))), "by name")
    if entails and sorted(of_data) == sorted(TWO_CLASS):
        return _two_class(of_model, of_data, tuple(texts.names))
    classes = f"the model has the classes {', '.join(model)}; {texts.source} has {', '.join(texts.names)}"
    if all(re.fullmatch(r"label-\d+", name) for name in of_model):
        raise ValueError(
            f"{classes}: pass the model's label names, in the order of its outputs (--labels on the command)"
        )
    raise ValueError(f"{classes}: expected the same names, or entailment among NLI classes on both sides")


def _two_class(of_model: Sequence[str], of_data: Sequence[str], names: tuple[str, ...]) -> ClassMapping:
    def group(name: str) -> tuple[int, ...]:
        entailment = _key(name) == ENTAILMENT
        return tuple(index for index, other in enumerate(of_model) if (other == ENTAILMENT) == entailment)

    scored = {_key(name) == ENTAILMENT: index for index, name in enumerate(names)}
    gold = tuple(scored[name == ENTAILMENT] for name in of_data)
    return ClassMapping(names, tuple(group(name) for name in names), gold, "two-class")


def _key(name: str) -> str:
    """Lower case, with hyphens; not-entailment, non_entailment and nonentailment are one class."""
    key = re.sub(r"[\s_-]+", "-", name.strip().lower())
    return re.sub(r"^(not|non)-?entail(ment|ed)$", OTHER, key)
