"""Gradients with respect to the input embeddings: times the input, and integrated along a path."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from spinformer._base import checks
from spinformer._base.choices import METHOD_SUMMARIES
from spinformer.data.words import Words
from spinformer.explain.context import Context
from spinformer.explain.methods.base import ScorerMethod
from spinformer.explain.scoring import decided, in_batches
from spinformer.models.masked import MaskedClassifier
from spinformer.models.outputs import answers_of, offsets_of, value_of

Baseline = Literal["pad", "mask"]


class GradientTimesInput:
    """score_i = sum over the tokens t of word i of e_t . d log p_y / d e_t          (Denil et al. 2014; Shrikumar 2016)

    with e_t the input embedding of token t. log p_y and p_y order the words of a text alike: their gradients differ by
    the factor p_y. Of several labels, and of scores, the logit o_y stands in the place of log p_y.
    """

    name = "gradient-times-input"
    passes = "1, and 1 backward"

    def __init__(self, classifier: MaskedClassifier) -> None:
        self.classifier = classifier

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        return in_batches(self._scores, words, target, self.classifier.batch_size)

    def _scores(self, words: Words, target: Tensor | None) -> Tensor:
        words = words.to(self.classifier.device)
        model = self.classifier.model
        with _differentiable(), _embeddings(model, words.owner.shape) as embeddings:
            logits = model(**words.inputs).logits.float()
            value = value_of(offsets_of(logits, self.classifier.outputs), decided(logits, target)).sum()
            gradient = _gradient(value, embeddings)
        self.classifier.passes += len(words.words)
        return words.sums((gradient * embeddings[0]).detach().float().sum(-1))


class IntegratedGradients:
    """score_i = sum over the tokens t of word i of (e_t - b) . integral over a of d p_y(b + a (e - b)) / d e_t

    with a from 0 to 1 (Sundararajan, Taly and Yan 2017), at `steps` points of Gauss and Legendre. b is the input
    embedding of the padding token (baseline="pad") or of the mask token ("mask") in place of every token of a word;
    special tokens keep theirs, and attention and positions are those of the whole text. Complete: the scores sum to
    p_y(e) - p_y(b).
    """

    name = "integrated-gradients"

    def __init__(self, classifier: MaskedClassifier, steps: int = 32, baseline: Baseline = "pad") -> None:
        checks.at_least("steps", steps, 1)
        checks.choice("baseline", baseline, get_args(Baseline))
        token = classifier.tokenizer.pad_token_id if baseline == "pad" else classifier.tokenizer.mask_token_id
        if token is None:
            raise ValueError(f"baseline={baseline!r} needs a tokenizer with a {baseline} token; this one has none")
        self.classifier, self.steps, self.token = classifier, steps, int(token)
        self.passes = f"{steps + 1}, and {steps} backward"

    def __call__(self, words: Words, target: Tensor | None = None) -> Tensor:
        """(B, W)."""
        return in_batches(self._scores, words, target, self.classifier.batch_size)

    def replaced(self, words: Words) -> Tensor:
        """The token numbers, (B, n), whose embeddings are the start of the path."""
        return words.inputs["input_ids"].masked_fill(words.owner >= 0, self.token)

    def _scores(self, words: Words, target: Tensor | None) -> Tensor:
        words = words.to(self.classifier.device)
        classes = decided(self.classifier.full_probabilities(words), target)
        embed = self.classifier.model.get_input_embeddings()
        with torch.no_grad():
            start = embed(self.replaced(words))
            way = embed(words.inputs["input_ids"]) - start
        nodes, weights = (torch.tensor(part).to(start) / 2 for part in np.polynomial.legendre.leggauss(self.steps))
        total = torch.zeros_like(start)
        for part in torch.arange(self.steps).split(max(1, self.classifier.batch_size // len(classes))):
            points = start + (nodes[part] + 0.5).view(-1, 1, 1, 1) * way  # (steps of this part, B, n, d)
            slopes = self._slopes(words, points.flatten(0, 1), classes).unflatten(0, (len(part), -1))
            total += (weights[part].view(-1, 1, 1, 1) * slopes).sum(0)
        self.classifier.passes += len(classes) * self.steps
        return words.sums((total * way).float().sum(-1))

    def _slopes(self, words: Words, points: Tensor, target: Tensor) -> Tensor:
        """d p_y / d e at embeddings (k B, n, d), k for each text in turn."""
        model, times = self.classifier.model, len(points) // len(target)
        inputs = {name: value.repeat(times, 1) for name, value in words.inputs.items()}
        with _differentiable(), _embeddings(model, points.shape[:2], points) as embeddings:
            answers = answers_of(model(**inputs).logits, self.classifier.outputs)
            return _gradient(value_of(answers, torch.cat([target] * times)).sum(), embeddings)


@contextmanager
def _differentiable() -> Iterator[None]:
    """Gradients on, and recurrent layers of models in evaluation without cuDNN, which refuses them there."""
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        yield


@contextmanager
def _embeddings(model: Any, shape: torch.Size, replacement: Tensor | None = None) -> Iterator[list[Tensor]]:
    """Input embeddings, (B, n, d), as the model looks them up, or a replacement: leaves to take gradients of."""
    leaves: list[Tensor] = []
    thread = get_ident()  # others may use the same model

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        if output.shape[:2] != shape or get_ident() != thread:
            return output
        leaves.append((output if replacement is None else replacement).detach().requires_grad_())
        return leaves[-1]

    handle = model.get_input_embeddings().register_forward_hook(keep)
    try:
        yield leaves
    finally:
        handle.remove()


def _gradient(value: Tensor, embeddings: list[Tensor]) -> Tensor:
    if len(embeddings) != 1:
        raise ValueError(f"expected a model that looks its embeddings up once; got {len(embeddings)} times")
    (gradient,) = torch.autograd.grad(value, embeddings)
    return gradient


class GradientMethod(ScorerMethod):
    """A method that needs the gradients of a model."""

    def missing(self, context: Context) -> str | None:
        """What a function of texts lacks."""
        if hasattr(context.classifier.model, "get_input_embeddings"):
            return None
        return f"method {self.name!r} needs the gradients of a model; a function is explained by masked passes alone"


INTEGRATED_GRADIENTS = GradientMethod(
    IntegratedGradients.name,
    METHOD_SUMMARIES[IntegratedGradients.name],
    "33, and 32 backward",
    lambda context: IntegratedGradients(context.classifier),
)
GRADIENT_TIMES_INPUT = GradientMethod(
    GradientTimesInput.name,
    METHOD_SUMMARIES[GradientTimesInput.name],
    GradientTimesInput.passes,
    lambda context: GradientTimesInput(context.classifier),
)
