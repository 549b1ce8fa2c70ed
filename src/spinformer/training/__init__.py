"""Training: classifiers, game heads, additive explainers and attractor networks.

    train_classifier(ClassifierRecipe(...), output)              a classifier, by a recipe
    train_game_head(model, tokenizer, texts, output, options)    the game of a classifier: no labels, its weights stay
    train_additive(network, classifier, texts, passes=...)       the network of the additive explainer
    train_attractor(network, images, AttractorRecipe(...))       couplings, without backpropagation

A run that was stopped can be resumed and ends at the weights of one that was not. Names load when they are used.
"""

from typing import TYPE_CHECKING

from spinformer._base.lazy import lazy_attributes

if TYPE_CHECKING:
    from spinformer.training.additive import train_additive
    from spinformer.training.attractor.pseudolikelihood import AttractorRecipe
    from spinformer.training.attractor.train import train_attractor
    from spinformer.training.classifier.recipe import ClassifierRecipe
    from spinformer.training.classifier.train import train_classifier
    from spinformer.training.game import GroundingOptions, train_game_head

__all__ = [
    "AttractorRecipe",
    "ClassifierRecipe",
    "GroundingOptions",
    "train_additive",
    "train_attractor",
    "train_classifier",
    "train_game_head",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "spinformer.training.additive": ("train_additive",),
        "spinformer.training.attractor.pseudolikelihood": ("AttractorRecipe",),
        "spinformer.training.attractor.train": ("train_attractor",),
        "spinformer.training.classifier.recipe": ("ClassifierRecipe",),
        "spinformer.training.classifier.train": ("train_classifier",),
        "spinformer.training.game": ("GroundingOptions", "train_game_head"),
    },
)
