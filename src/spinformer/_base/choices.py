"""What can be chosen by name, apart from the code behind it: the command line offers these without importing torch.

A method or a pooling head of this package stands here and where it is made; tests compare both. Those of other packages
are known to the registries alone.
"""

import sys
from collections.abc import Callable
from typing import Literal, TypeVar

T = TypeVar("T")

# How words are hidden from a classifier; "own" is a function of the caller. See `spinformer.models.masked`.
Masking = Literal["attention", "token", "delete", "own"]
MASKINGS = ("attention", "token", "delete")
# The readout of a game head. See `spinformer.models.game_head`.
Form = Literal["sums", "attending"]
# What is hidden and scored. See `spinformer.explain.players`.
PlayerKind = Literal["words", "sentences", "hierarchical"]
# How files of explanations end, and how many of the strongest pairs a row of them holds.
FORMATS, PAIRS = (".jsonl", ".csv", ".parquet"), 10
# Words of the texts whose exact values are tabulated, and masked passes of the estimators that ours are compared with.
LOW, HIGH, BUDGETS = 12, 16, (100, 200, 400, 800, 1600)

# Explanation methods, each in one line. See `spinformer.explain.methods`.
METHOD_SUMMARIES = {
    "shapley": "Shapley values of the grounded game: they share out the probability",
    "banzhaf": "Banzhaf values of the grounded game: the mean effect of a word",
    "field": "fields of the Ising model: Shapley and Banzhaf values in one",
    "attention": "mean-field attention: fields and pairs together",
    "kernel-shap": "Shapley values of masked passes, by least squares; exact for short texts",
    "shapley-sampling": "Shapley values of masked passes, by permutations of the words",
    "leave-one-out": "how much the probability falls when one word is hidden",
    "integrated-gradients": "gradients on the way from padding to the text: they sum to the difference of the "
    "probabilities",
    "gradient-times-input": "gradient of the log-probability times the word's embedding",
    "additive-explainer": "a network trained to give Shapley values in one pass (FastSHAP)",
    "layer": "the classifier's own pooling layer: its attention, and its values and pairs",
    "layer-field": "the fields of the classifier's own NeuroGame layer",
    "layer-shapley": "the Shapley values of the classifier's own NeuroGame layer",
    "layer-banzhaf": "the Banzhaf values of the classifier's own NeuroGame layer",
    "random": "random numbers: the floor of every comparison",
}
# Pooling heads. See `spinformer.models.pooling`.
HEADS = ("neurogame", "cls", "mean", "attention", "released", "spins", "grounded", "joint")

# Of the attractor network: tasks, shapes of couplings, settings, optimisers with their rates, what processes split.
TASKS = ("masked", "noisy")
SHAPES = ("full", "low-rank", "relative", "shared")
PRESET_NAMES = ("paper", "notebook", "field")
OPTIMISERS = {"power": 1.0, "sgd": 1.0, "adam": 1e-3}  # the rates suit the energy of unit spins
SHARDS = ("none", "sites", "data")


def registered(modules: tuple[str, ...], read: Callable[[], T], own: T) -> T:
    """`read()` where one of the modules with a registry is imported, for another package may have added to it; else
    `own`, which is what this package registers.
    """
    return read() if any(name in sys.modules for name in modules) else own
