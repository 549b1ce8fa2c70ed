"""Gradients with respect to the input embeddings: times the input, and integrated along a path."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from spinformer import checks
from spinformer.data.words import Words
from spinformer.explain.attribution.base import in_batches
from spinformer.extras import require
from spinformer.models.masked import MaskedClassifier

Baseline = Literal["pad", "mask"]


class GradientTimesInput:
    """score_i = sum over the tokens t of word i of e_t . d log p_y / d e_t          (Denil et al. 2014; Shrikumar 2016)

    with e_t the input embedding of token t. log p_y and p_y order the words of a text alike: their gradients differ by
    the factor p_y.
    """

    name = "gradient-times-input"
    passes = "1, and 1 backward"

    def __init__(self, classifier: MaskedClassifier) -> None:
        self.classifier = classifier

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        return in_batches(self._scores, words, self.classifier.batch_size)

    def _scores(self, words: Words) -> Tensor:
        words = words.to(self.classifier.device)
        model = self.classifier.model
        with _differentiable(), _looked_up(model, words.owner.shape) as found:
            logits = model(**words.inputs).logits.float()
            if len(found) != 1:
                raise ValueError(f"expected a model that looks its embeddings up once; got {len(found)} times")
            (gradient,) = torch.autograd.grad(logits.log_softmax(-1).max(-1).values.sum(), found)
        self.classifier.passes += len(words.words)
        return words.sums((gradient * found[0]).detach().float().sum(-1))


class IntegratedGradients:
    """score_i = sum over the tokens t of word i of (e_t - b) . integral over a of d p_y(b + a (e - b)) / d e_t

    with a from 0 to 1 (Sundararajan, Taly and Yan 2017), by captum, at `steps` points of Gauss and Legendre. b is the
    input embedding of the padding token (baseline="pad") or of the mask token ("mask") in place of every token of a
    word; special tokens keep theirs, and attention and positions are those of the whole text. Complete: the scores sum
    to p_y(e) - p_y(b).
    """

    name = "integrated-gradients"

    def __init__(self, classifier: MaskedClassifier, steps: int = 50, baseline: Baseline = "pad") -> None:
        checks.at_least("steps", steps, 1)
        checks.choice("baseline", baseline, get_args(Baseline))
        token = classifier.tokenizer.pad_token_id if baseline == "pad" else classifier.tokenizer.mask_token_id
        if token is None:
            raise ValueError(f"baseline={baseline!r} needs a tokenizer with a {baseline} token; this one has none")
        self.captum = require("captum.attr", extra="compare")
        self.classifier, self.steps, self.token = classifier, steps, int(token)
        self.passes = f"{steps + 3}, and {steps} backward"  # to decide, and captum's looks at either end of the path

    def __call__(self, words: Words) -> Tensor:
        """(B, W)."""
        return in_batches(self._scores, words, self.classifier.batch_size)

    def replaced(self, words: Words) -> Tensor:
        """The token numbers, (B, n), whose embeddings are the start of the path."""
        return words.inputs["input_ids"].masked_fill(words.owner >= 0, self.token)

    def _scores(self, words: Words) -> Tensor:
        words = words.to(self.classifier.device)
        model = self.classifier.model
        others = {name: value for name, value in words.inputs.items() if name != "input_ids"}

        def probabilities(ids: Tensor, *values: Tensor) -> Tensor:
            inputs = dict(zip(others, values, strict=True))
            return model(input_ids=ids, **inputs).logits.float().softmax(-1)

        with torch.no_grad():
            target = probabilities(words.inputs["input_ids"], *others.values()).argmax(-1)
        with _differentiable():
            found: Any = self.captum.LayerIntegratedGradients(probabilities, model.get_input_embeddings()).attribute(
                inputs=words.inputs["input_ids"],
                baselines=self.replaced(words),
                additional_forward_args=tuple(others.values()),
                target=target,
                n_steps=self.steps,
                internal_batch_size=max(self.classifier.batch_size, len(words.words)),
            )
        self.classifier.passes += len(words.words) * (self.steps + 3)
        return words.sums(found.detach().float().sum(-1))


@contextmanager
def _differentiable() -> Iterator[None]:
    """Gradients on, and recurrent layers of models in evaluation without cuDNN, which refuses them there."""
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        yield


@contextmanager
def _looked_up(model: Any, shape: torch.Size) -> Iterator[list[Tensor]]:
    """Input embeddings, (B, n, d), as the model looks them up: leaves to take gradients with respect to."""
    found: list[Tensor] = []

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        if output.shape[:2] != shape:
            return output
        found.append(output.detach().requires_grad_())
        return found[-1]

    handle = model.get_input_embeddings().register_forward_hook(keep)
    try:
        yield found
    finally:
        handle.remove()
