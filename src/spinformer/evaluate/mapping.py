"""How a model's classes are scored against a data set's.

by name     the same names in any order, whatever their case
two-class   entailment against all others: for data with the classes entailment and non-entailment (HANS), and for data
            in which just entailment and neutral occur (MoNLI). A prediction is the model's largest class, as usual, and
            all but entailment count as non-entailment; the probability of non-entailment is the sum of the others'.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spinformer.data.texts import Texts

ENTAILMENT, OTHER = "entailment", "non-entailment"
TWO_CLASS = (ENTAILMENT, OTHER)
OTHERS = frozenset({"neutral", "contradiction", OTHER})


@dataclass(frozen=True)
class Mapping:
    """names: the classes that are scored; groups: which of the model's classes each is made of; gold: which of them
    each class of the data counts as; rule: 'by name' or 'two-class'.
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
        owner = {column: place for place, group in enumerate(self.groups) for column in group}
        table = torch.tensor([owner[column] for column in range(len(owner))])
        return table[logits.argmax(1).cpu()]

    def labels(self, labels: Sequence[int]) -> Tensor:
        """The data's labels as positions in `names`."""
        return torch.tensor(self.gold)[torch.as_tensor(labels, dtype=torch.long)]


def class_names(model: Any, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """The model's class names, in the order of its logits; `given` ones in place of those of its configuration."""
    known = model.config.id2label
    names = tuple(str(known[place]) for place in sorted(known)) if given is None else tuple(given)
    if len(names) != len(known):
        raise ValueError(f"the model has {len(known)} classes; got {len(names)} label names: {', '.join(names)}")
    if len(names) < 2:
        raise ValueError("the model must have at least two classes; it has one output, as for a regression")
    if len({_key(name) for name in names}) < len(names):
        raise ValueError(f"the model's classes must have different names; got {', '.join(names)}")
    return names


def map_classes(model: Sequence[str], texts: Texts) -> Mapping:
    """How to score a model with these classes on `texts`."""
    if texts.labels is None or not len(texts):
        raise ValueError(f"{texts.source} has no {'rows' if texts.labels is not None else 'labels'} to score against")
    ours, theirs = [_key(name) for name in model], [_key(name) for name in texts.names]
    occurring = {theirs[label] for label in set(texts.labels)}
    able = ENTAILMENT in ours and len(ours) > 1 and set(ours) - {ENTAILMENT} <= OTHERS
    if able and occurring == {ENTAILMENT, "neutral"}:
        return _two_class(ours, theirs, TWO_CLASS)
    if sorted(ours) == sorted(theirs):
        groups = tuple((ours.index(name),) for name in theirs)
        return Mapping(tuple(texts.names), groups, tuple(range(len(theirs))), "by name")
    if able and sorted(theirs) == sorted(TWO_CLASS):
        return _two_class(ours, theirs, tuple(texts.names))
    have = f"the model has the classes {', '.join(model)}; {texts.source} has {', '.join(texts.names)}"
    if all(re.fullmatch(r"label-\d+", name) for name in ours):
        raise ValueError(f"{have}: pass the model's label names, in the order of its outputs (--labels on the command)")
    raise ValueError(f"{have}: expected the same names, or entailment among NLI classes on both sides")


def _two_class(ours: Sequence[str], theirs: Sequence[str], names: tuple[str, ...]) -> Mapping:
    def group(name: str) -> tuple[int, ...]:
        return tuple(place for place, own in enumerate(ours) if (own == ENTAILMENT) == (_key(name) == ENTAILMENT))

    place = {_key(name) == ENTAILMENT: position for position, name in enumerate(names)}
    gold = tuple(place[name == ENTAILMENT] for name in theirs)
    return Mapping(names, tuple(group(name) for name in names), gold, "two-class")


def _key(name: str) -> str:
    """Lower case, with hyphens; not-entailment, non_entailment and nonentailment are one class."""
    key = re.sub(r"[\s_-]+", "-", name.strip().lower())
    return re.sub(r"^(not|non)-?entail(ment|ed)$", OTHER, key)
