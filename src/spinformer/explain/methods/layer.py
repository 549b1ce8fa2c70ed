"""The classifier's own pooling layer, read as an explanation: the paper's phi, beta, J and alpha."""

from threading import get_ident
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.choices import METHOD_SUMMARIES
from spinformer.attention.output import NeuroGameOutput
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.assemble import from_scores
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.methods.base import Method
from spinformer.explain.scoring import Scorer, in_batches
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import answers_of

# The numbers of the NeuroGame layer for each token, and the field of `Word` that each fills.
NUMBERS = {"shapley": "shapley", "banzhaf": "banzhaf", "gate": "gate", "fields": "field", "attention": "attention"}


class LayerScores:
    """score_i = sum over the tokens t of word i of the layer's number for t, mean over its attention heads

    number: of a NeuroGame layer "attention", alpha (NGT Eq. 11); "fields", J_i (NGT Eq. 6); "shapley", phi (NGT Eq. 4);
    "banzhaf", beta (NGT Eq. 5). Of softmax attention pooling only "attention", a = softmax(w . tanh(W x_t + b)) (Yang
    et al. 2016). They say how much of a word enters the text's vector, not for which class it speaks.
    """

    passes = "1"

    def __init__(self, classifier: MaskedClassifier, number: str = "attention", name: str = "layer") -> None:
        lacking = missing_layer(classifier)
        if lacking is not None:
            raise ValueError(lacking)
        checks.choice("number", number, tuple(NUMBERS) if _plays(classifier) else ("attention",))
        self.classifier, self.number, self.name = classifier, number, name

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        return in_batches(self._scores, words, target, self.classifier.batch_size)

    @torch.no_grad()
    def _scores(self, words: Words, target: Tensor | None) -> Tensor:
        words = words.to(self.classifier.device)
        if _plays(self.classifier):
            return words.sums(getattr(self.game(words)[0], self.number).mean(1))
        pooling = self.classifier.model.model.pooling
        inputs: list[tuple[Any, ...]] = []
        thread = get_ident()  # others may use the same model

        def keep(module: Any, arguments: tuple[Any, ...]) -> None:
            if get_ident() == thread:
                inputs.append(arguments)

        handle = pooling.register_forward_pre_hook(keep)
        try:
            self.classifier.model(**words.inputs)
        finally:
            handle.remove()
        self.classifier.passes += len(words.words)
        hidden, mask = inputs[0][:2]
        return words.sums(pooling.weights(hidden, mask))

    @torch.no_grad()
    def game(self, words: Words) -> tuple[NeuroGameOutput, Tensor]:
        """Everything that the NeuroGame layer computes for these texts, and the probabilities: one pass."""
        output = self.classifier.model(**words.inputs, output_game=True)
        self.classifier.passes += len(words.words)
        return output.game, answers_of(output.logits, self.classifier.outputs)


class LayerMethod(Method):
    """What the paper explains with: the numbers of the layer that pools the tokens.

    number: the score, as in `LayerScores`. A word's values are sums over its tokens, its gate is the mean. Pairs are
    the interactions J_ij (NGT Eq. 9), summed over the tokens of both words. All are means over the attention heads.
    """

    passes = "1"

    def __init__(self, name: str, summary: str, number: str) -> None:
        self.name, self.summary, self.number = name, summary, number

    def missing(self, context: Context) -> str | None:
        """What is missing without a pooling layer whose weights can be read."""
        return missing_layer(context.classifier, self.name, self.number)

    def scorer(self, context: Context) -> Scorer:
        """One number of the layer."""
        return LayerScores(context.classifier, self.number, self.name)

    @torch.no_grad()
    def explain(self, context: Context, texts: Texts, words: Words, target: Tensor | None) -> list[Explanation]:
        """Of a NeuroGame layer phi, beta, lambda, J_i, alpha of words and J_ij of pairs; else the attention alone."""
        if not _plays(context.classifier):
            return super().explain(context, texts, words, target)
        before = context.classifier.passes
        on_device = words.to(context.classifier.device)
        game, probabilities = LayerScores(context.classifier, self.number).game(on_device)
        columns = {field: on_device.sums(getattr(game, number).mean(1)) for number, field in NUMBERS.items()}
        tokens = on_device.sums(torch.ones_like(game.gate.mean(1)))
        columns["gate"] = columns["gate"] / tokens.clamp_min(1)  # lambda is a share, not an amount
        pairs = game.interactions.dense().mean(1)  # (B, n, n): J_ij of tokens
        return from_scores(
            self.name,
            context,
            texts,
            words,
            target,
            columns[NUMBERS[self.number]],
            before,
            columns=columns,
            interactions=on_device.sums(on_device.sums(pairs).mT),  # (B, W, W)
            probabilities=probabilities,
            ess=game.diagnostics.ess.mean(1),
            converged=game.diagnostics.converged.all(1),
        )


LAYER_METHODS = (
    LayerMethod("layer", METHOD_SUMMARIES["layer"], "attention"),
    LayerMethod("layer-field", METHOD_SUMMARIES["layer-field"], "fields"),
    LayerMethod("layer-shapley", METHOD_SUMMARIES["layer-shapley"], "shapley"),
    LayerMethod("layer-banzhaf", METHOD_SUMMARIES["layer-banzhaf"], "banzhaf"),
)


def missing_layer(classifier: MaskedClassifier, name: str = "layer", number: str = "attention") -> str | None:
    """What a classifier lacks for `LayerScores`, in one line; None where it lacks nothing."""
    pooling = getattr(getattr(classifier.model, "model", None), "pooling", None)
    if _plays(classifier) or (number == "attention" and hasattr(pooling, "weights")):
        return None
    head = getattr(getattr(classifier.model, "config", None), "head", None)
    kind = type(classifier.model).__name__ + ("" if head is None else f" with head={head!r}")
    heads = "head='neurogame' or 'attention'" if number == "attention" else "head='neurogame'"
    return f"method {name!r} needs a NeuroGameForSequenceClassification with {heads}; got {kind}"


def _plays(classifier: MaskedClassifier) -> bool:
    return bool(getattr(classifier.model, "plays", False))
