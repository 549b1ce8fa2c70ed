"""The options of grounding, which the command line offers without importing torch."""

import math
from dataclasses import dataclass
from typing import get_args

from spinformer._base import checks
from spinformer._base.choices import MASKINGS, Form, Masking


@dataclass(frozen=True)
class GroundingOptions:
    """How a game head is trained.

    subsets: masked passes for each text and epoch; repeats: how often the answers of an epoch are learnt from before
    others are asked; masking: how words are hidden (`MaskedClassifier`); max_length: tokens read of a text, 0 for as
    many as the classifier takes; form, layers, heads, dim, hidden, readout, reads: of the game head (`GameHeadConfig`),
    where empty layers are the embeddings, the middle and the last; save_steps: updates between checkpoints.
    """

    epochs: int = 3
    batch_size: int = 128
    subsets: int = 4
    repeats: int = 1
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.1
    masking: Masking = "attention"
    max_length: int = 0
    form: Form = "attending"
    layers: tuple[int, ...] = ()
    heads: int = 8
    dim: int = 192
    hidden: int = 512
    readout: int = 384
    reads: int = 2
    save_steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        counts = ("epochs", "batch_size", "subsets", "repeats", "save_steps", "heads", "dim", "hidden", "readout")
        for name in (*counts, "reads"):
            checks.at_least(name, getattr(self, name), 1)
        checks.at_least("seed", self.seed, 0)
        checks.at_least("max_length", self.max_length, 0)
        checks.positive_number("learning_rate", self.learning_rate)
        checks.choice("masking", self.masking, (*MASKINGS, "own"))
        checks.choice("form", self.form, get_args(Form))
        checks.items("layers", self.layers, int)
        for name, highest in (("weight_decay", math.inf), ("warmup", 1.0)):
            checks.finite_number(name, getattr(self, name))
            if not 0 <= getattr(self, name) <= highest:
                raise ValueError(f"{name} must be from 0 to {highest:g}; got {getattr(self, name)}")
