"""What an explanation method is, and the registry of them all."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from torch import Tensor

from spinformer._base.registry import Registry
from spinformer.data.texts import Texts
from spinformer.data.words import Words
from spinformer.explain.assemble import from_scores, one_by_one
from spinformer.explain.context import Context
from spinformer.explain.explanation import Explanation
from spinformer.explain.scoring import Scorer

PASSES = 200  # masked passes for each text, for the scores of methods that sample


class Method(ABC):
    """An explanation method. `METHODS.register(MyMethod())` makes it known to `Explainer`, `evaluate` and the commands.

    name: how all of them call it; summary: one line for help and documents; passes: what a text of W words costs, in
    words; sampled: whether the options `passes` and `until` of a call mean anything to it.
    """

    name: str
    summary: str
    passes: str
    sampled: bool = False

    def missing(self, context: Context) -> str | None:
        """What this classifier lacks for the method, in one line; None where it lacks nothing."""
        return None

    @abstractmethod
    def scorer(self, context: Context) -> Scorer:
        """Scores of words, which `evaluate` measures."""

    def explain(self, context: Context, texts: Texts, words: Words, target: Tensor | None) -> list[Explanation]:
        """Explanations of a batch of texts: unless overridden, of the scorer's scores alone.

        target: (B,), the class to explain; None for the class that the classifier decides for.
        """
        scorer = self.scorer(context)
        explanations = []
        for text, word, classes in one_by_one(texts, words, target):  # so that each text's passes are counted
            before = context.classifier.passes
            scores = scorer(word, classes)
            explanations += from_scores(self.name, context, text, word, classes, scores, before)
        return explanations


class ScorerMethod(Method):
    """A method that is nothing but its scores: build(context) gives the scorer."""

    def __init__(self, name: str, summary: str, passes: str, build: Callable[[Context], Scorer]) -> None:
        self.name, self.summary, self.passes, self.build = name, summary, passes, build

    def scorer(self, context: Context) -> Scorer:
        """As `build` gives it."""
        return self.build(context)


METHODS: Registry[Method] = Registry("method")
