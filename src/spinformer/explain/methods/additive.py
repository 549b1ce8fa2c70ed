"""The additive explainer: a small network beside the classifier that gives Shapley values from one pass."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer._base.choices import METHOD_SUMMARIES
from spinformer._base.rng import seeded
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.context import Context
from spinformer.explain.methods.base import Method
from spinformer.explain.scoring import Scorer, decided, in_batches
from spinformer.models.additive import AdditiveNetwork
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import value_of
from spinformer.training.additive import train_additive


class AdditiveExplainer:
    """phi(x; theta),   theta = argmin of E over texts x and C ~ w of (v(C) - v(nothing) - sum over i in C of phi_i)^2

    v(C) = p(C): the classifier's probabilities when it sees the words C alone; phi: normalised so that it sums to
    v(N) - v(nothing), N all words; w: Shapley's kernel (see `KernelShap`). FastSHAP (Jethani et al. 2022) on the frozen
    hidden states of the classifier, as in ViT Shapley (Covert et al. 2023). The minimum over all functions phi is the
    Shapley value.

    options: layers, width, classes and seed of the network (`AdditiveNetwork.for_classifier`).

    Scores take one pass: v(nothing) is then its mean over the training texts, an error that all words of a text share.
    """

    name = "additive-explainer"
    passes = "1"

    def __init__(self, classifier: MaskedClassifier, **options: Any) -> None:
        self.classifier = classifier
        self.network = AdditiveNetwork.for_classifier(classifier, **options)
        self.record: dict[str, Any] | None = None

    def train(self, texts: Texts, *, passes: int, **options: Any) -> dict[str, Any]:
        """Learn from texts, without labels, with a budget of forward passes; options: those of `train_additive`.

        Returns the record of the training, which `save` keeps.
        """
        self.record = train_additive(self.network, self.classifier, texts, passes=passes, **options)
        return self.record

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W), for the classes `target`, (B,), or for those that the classifier decides for."""
        if self.record is None:
            raise ValueError("this explainer has learnt nothing yet: train it, or load a trained one")
        return in_batches(self._scores, words, target, self.classifier.batch_size)

    @torch.no_grad()
    def _scores(self, words: Words, target: Tensor | None) -> Tensor:
        words = words.to(self.classifier.device)
        probabilities, states = self.network.read(self.classifier, words)
        values = self.network(states, words, probabilities - self.network.empty)  # (B, W, classes)
        classes = decided(probabilities, target)
        if self.network.config.classes == "decided" and not torch.equal(classes, probabilities.argmax(-1)):
            raise ValueError("this explainer knows only the class that the classifier decides for; got another target")
        return value_of(values, classes)

    def save(self, folder: Path) -> None:
        """explainer.safetensors and explainer.json in `folder`."""
        self.network.save(folder, self.record)

    @classmethod
    def load(cls, folder: Path, classifier: MaskedClassifier) -> "AdditiveExplainer":
        """What `save` wrote, for the same classifier under the same masking."""
        explainer = cls.__new__(cls)
        explainer.classifier = classifier
        with seeded(0):  # the weights that are replaced at once
            explainer.network, explainer.record = AdditiveNetwork.load(folder, classifier)
        return explainer


def load_additive(additive: Scorer | Path | str | None, classifier: MaskedClassifier) -> Scorer | None:
    """An additive explainer that a caller hands in, or the saved one of a folder."""
    if isinstance(additive, Path | str):
        return AdditiveExplainer.load(Path(additive), classifier)
    if additive is not None and not callable(additive):
        raise TypeError(f"additive must be a trained AdditiveExplainer, or its folder; got {type(additive).__name__}")
    return additive


class AdditiveMethod(Method):
    """A trained additive explainer, which the context must hold."""

    name = AdditiveExplainer.name
    summary = METHOD_SUMMARIES[name]
    passes = AdditiveExplainer.passes

    def missing(self, context: Context) -> str | None:
        """What is missing without a trained explainer."""
        if context.additive is not None:
            return None
        return "additive scores are learnt: name a saved additive explainer, or texts to train one on"

    def scorer(self, context: Context) -> Scorer:
        """The trained one."""
        assert context.additive is not None  # `missing` says so before
        return context.additive
