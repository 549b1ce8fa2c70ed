"""Weights that a classifier computes on its way, read as scores of words."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from spinformer import checks
from spinformer.data.words import Words
from spinformer.explain.attribution.base import in_batches
from spinformer.models.masked import MaskedClassifier
from spinformer.models.neurogame.heads import NeuroGamePooling, SoftmaxAttention

GameScore = Literal["attention", "fields", "shapley", "banzhaf"]


class AttentionPooling:
    """score_i = sum over the tokens t of word i of a_t,   a = softmax(w . tanh(W x_t + b))

    the weights of the softmax-attention head (head="attention"; Yang et al. 2016). They say how much of a word enters
    the text's vector, not for which class.
    """

    name = "attention-pooling"
    passes = "1"

    def __init__(self, classifier: MaskedClassifier) -> None:
        self.classifier, self.pooling = classifier, _pooling(classifier, SoftmaxAttention, "attention")

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        return in_batches(self._scores, words, self.classifier.batch_size)

    @torch.no_grad()
    def _scores(self, words: Words) -> Tensor:
        words = words.to(self.classifier.device)
        seen: list[tuple[Any, ...]] = []
        handle = self.pooling.register_forward_pre_hook(lambda module, inputs: seen.append(inputs))
        try:
            self.classifier.model(**words.inputs)
        finally:
            handle.remove()
        self.classifier.passes += len(words.words)
        hidden, mask = seen[0][:2]
        return words.sums(self.pooling.weights(hidden, mask))


class NeuroGameScores:
    """score_i = sum over the tokens t of word i of (1 / H) sum over the heads h of s_t^(h)

    what: s, of the NeuroGame layer's own numbers: "attention", alpha (Eq. 11); "fields", J_i (Eq. 6); "shapley", phi
    (Eq. 4); "banzhaf", beta (Eq. 5). Like every pooling weight they speak of the text's vector, not of one class.
    """

    passes = "1"

    def __init__(self, classifier: MaskedClassifier, what: GameScore = "attention") -> None:
        checks.choice("what", what, get_args(GameScore))
        _pooling(classifier, NeuroGamePooling, "neurogame")
        self.classifier, self.what = classifier, what
        self.name = f"neurogame-{what}"

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        return in_batches(self._scores, words, self.classifier.batch_size)

    @torch.no_grad()
    def _scores(self, words: Words) -> Tensor:
        words = words.to(self.classifier.device)
        game = self.classifier.model(**words.inputs, output_game=True).game
        self.classifier.passes += len(words.words)
        return words.sums(getattr(game, self.what).mean(1))


def _pooling(classifier: MaskedClassifier, kind: type[nn.Module], head: str) -> Any:
    """The pooling of a model with this head, or an error that says which model has one."""
    model = classifier.model
    pooling = getattr(getattr(model, "model", None), "pooling", None)
    if not isinstance(pooling, kind):
        has = getattr(getattr(model, "config", None), "head", None)
        found = f"{type(model).__name__}" + ("" if has is None else f" with head={has!r}")
        raise ValueError(f"these scores need a NeuroGameForSequenceClassification with head={head!r}; got {found}")
    return pooling
