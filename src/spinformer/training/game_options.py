"""The options of grounding, which the command line offers without importing torch."""

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

from spinformer._base import checks
from spinformer._base.choices import MASKINGS, Form, Masking

OPTIMIZERS = ("adamw", "muon")

# Texts from which on a large game, learnt with new answers each time, is better than a small one.
MANY = 16_000
# Texts up to which a game that is smaller still is better, and is better learnt by Muon.
FEW = 4_000


@dataclass(frozen=True)
class GroundingOptions:
    """How a game head is trained.

    subsets: masked passes for each text and epoch; repeats: how often the answers of an epoch are learnt from before
    others are asked; masking: how words are hidden (`MaskedClassifier`); max_length: tokens read of a text, 0 for as
    many as the classifier takes; form, layers, heads, dim, hidden, readout, reads: of the game head (`GameHeadConfig`),
    where empty layers are the embeddings, the last and those between, at most seven, and from few texts the middle one
    alone between; optimizer: adamw, or muon for matrices, its rate ten times `learning_rate`; hints: weight of the
    hidden states that are learnt beside the answers; save_steps: updates between checkpoints; gain: of R², what twice
    as many texts of a stream must bring, or it is read no further; 0 reads all of it. Where epochs, batch_size,
    repeats, optimizer, learning_rate, dim, hidden or readout is 0 or empty, it is chosen by the number of texts
    (`suited`).
    """

    epochs: int = 0
    batch_size: int = 0
    subsets: int = 4
    repeats: int = 0
    optimizer: str = ""
    learning_rate: float = 0.0
    weight_decay: float = 0.1
    warmup: float = 0.1
    masking: Masking = "attention"
    max_length: int = 0
    hints: float = 1.0
    form: Form = "attending"
    layers: tuple[int, ...] = ()
    heads: int = 8
    dim: int = 0
    hidden: int = 0
    readout: int = 0
    reads: int = 2
    save_steps: int = 200
    gain: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("subsets", "save_steps", "heads", "reads"):
            checks.at_least(name, getattr(self, name), 1)
        for name in ("epochs", "batch_size", "repeats", "dim", "hidden", "readout", "seed", "max_length"):
            checks.at_least(name, getattr(self, name), 0)
        checks.choice("masking", self.masking, (*MASKINGS, "own"))
        checks.choice("form", self.form, get_args(Form))
        checks.choice("optimizer", self.optimizer, ("", *OPTIMIZERS))
        checks.items("layers", self.layers, int)
        highests = {"learning_rate": math.inf, "weight_decay": math.inf, "hints": math.inf, "warmup": 1.0, "gain": 1.0}
        for name, highest in highests.items():
            checks.finite_number(name, getattr(self, name))
            if not 0 <= getattr(self, name) <= highest:
                raise ValueError(f"{name} must be from 0 to {highest:g}; got {getattr(self, name)}")

    def suited(self, texts: int) -> "GroundingOptions":
        """These options for so many texts: what is 0 is chosen.

        From many texts a large game is learnt, in large batches, and every answer is used twice. From fewer a small one
        is learnt, in small batches; answers, which take most of the time on a CPU, are used several times. Muon learns
        more in as many updates, but for numbers between FEW and MANY.
        """
        if texts < MANY:
            epochs = min(8, max(1, round(FEW / max(1, texts))))
            repeats, batch = max(4, 8 // epochs), max(1, min(16, texts))
            optimizer, wide = ("muon", 1) if texts <= FEW else ("adamw", 2)
            chosen: dict[str, Any] = {"epochs": epochs, "batch_size": batch, "repeats": repeats, "learning_rate": 2e-3}
            sizes = {"dim": 32 * wide, "hidden": 96 * wide, "readout": 64 * wide}
        else:
            optimizer = "muon"
            chosen = {"epochs": 3, "batch_size": 128, "repeats": 2, "learning_rate": 1e-3}
            sizes = {"dim": 192, "hidden": 512, "readout": 384}
        sizes["dim"] = -(-sizes["dim"] // self.heads) * self.heads
        chosen |= sizes | {"optimizer": optimizer}
        return replace(self, **{name: getattr(self, name) or value for name, value in chosen.items()})
