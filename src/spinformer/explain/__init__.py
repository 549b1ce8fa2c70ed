"""Which words, and which pairs of words, decided: `Explainer`, `explain`, `ground`, `Explanation`.

Names are imported when they are used: an `Explanation` needs torch alone, an `Explainer` also transformers. The package
can be called: `spinformer.explain(model, tokenizer, text)` is `spinformer.explain.explain(model, tokenizer, text)`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spinformer._base.lazy import lazy_attributes

if TYPE_CHECKING:
    from spinformer.explain.corpus import explain_corpus
    from spinformer.explain.explainer import Explainer
    from spinformer.explain.explanation import Explanation
    from spinformer.explain.explanation_set import ExplanationSet
    from spinformer.explain.methods import METHODS, Context, Method
    from spinformer.explain.one_line import explain, ground
    from spinformer.explain.record import Pair, Word
    from spinformer.explain.set_difference import SetDifference
    from spinformer.explain.summary import PairSummary, UnusualText, WordSummary

__all__ = [
    "METHODS",
    "Context",
    "Explainer",
    "Explanation",
    "ExplanationSet",
    "Method",
    "Pair",
    "PairSummary",
    "SetDifference",
    "UnusualText",
    "Word",
    "WordSummary",
    "explain",
    "explain_corpus",
    "ground",
]

NEEDED = ("transformers", "nli")  # by all but what shows explanations

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "spinformer.explain.record": ("Pair", "Word"),
        "spinformer.explain.explanation": ("Explanation",),
        "spinformer.explain.explanation_set": ("ExplanationSet",),
        "spinformer.explain.set_difference": ("SetDifference",),
        "spinformer.explain.summary": ("PairSummary", "UnusualText", "WordSummary"),
        "spinformer.explain.methods": ("METHODS", "Context", "Method"),
        "spinformer.explain.explainer": ("Explainer",),
        "spinformer.explain.one_line": ("explain", "ground"),
        "spinformer.explain.corpus": ("explain_corpus",),
    },
    extras={f"spinformer.explain.{name}": NEEDED for name in ("methods", "explainer", "one_line", "corpus")},
)


class _CallablePackage(ModuleType):
    """`spinformer.explain` names both this package and the function; so the package does what the function does."""

    def __call__(
        self, model: Any, tokenizer: Any, text: Any, text_pair: Any = None, **options: Any
    ) -> "Explanation | list[Explanation]":
        explanations: Explanation | list[Explanation] = self.explain(model, tokenizer, text, text_pair, **options)
        return explanations


sys.modules[__name__].__class__ = _CallablePackage
