"""Training of the attractor network by pseudo-likelihood, and of the transformers that it is compared with.

`train_attractor` trains couplings without backpropagation by an `AttractorRecipe`; `preset` gives a network and a
recipe by name; `train_transformer` trains the baselines with backpropagation.
"""

from spinformer.training.attractor.backprop import BackpropRecipe, train_transformer
from spinformer.training.attractor.presets import PRESETS, preset
from spinformer.training.attractor.pseudolikelihood import AttractorRecipe
from spinformer.training.attractor.train import train_attractor

__all__ = ["PRESETS", "AttractorRecipe", "BackpropRecipe", "preset", "train_attractor", "train_transformer"]
