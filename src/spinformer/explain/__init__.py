"""Which words, and which pairs of words, decided: `Explainer`, `explain`, `ground`, `Explanation`.

Names are imported when they are used: an `Explanation` needs torch alone, an `Explainer` also transformers. The package
can be called: `spinformer.explain(model, tokenizer, text)` is `spinformer.explain.explain(model, tokenizer, text)`.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spinformer._base.lazy import lazy_attributes

if TYPE_CHECKING:
    from spinformer.explain.explainer import Explainer, explain, ground
    from spinformer.explain.explanation import Explanation
    from spinformer.explain.methods import METHODS, Context, Method
    from spinformer.explain.record import Pair, Word

__all__ = ["METHODS", "Context", "Explainer", "Explanation", "Method", "Pair", "Word", "explain", "ground"]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "spinformer.explain.explainer": ("Explainer", "explain", "ground"),
        "spinformer.explain.explanation": ("Explanation",),
        "spinformer.explain.methods": ("METHODS", "Context", "Method"),
        "spinformer.explain.record": ("Pair", "Word"),
    },
    extras={
        "spinformer.explain.explainer": ("transformers", "nli"),
        "spinformer.explain.methods": ("transformers", "nli"),
    },
)


class _CallablePackage(ModuleType):
    """`spinformer.explain` names both this package and the function; so the package does what the function does."""

    def __call__(
        self, model: Any, tokenizer: Any, text: Any, text_pair: Any = None, **options: Any
    ) -> "Explanation | list[Explanation]":
        explanations: Explanation | list[Explanation] = self.explain(model, tokenizer, text, text_pair, **options)
        return explanations


sys.modules[__name__].__class__ = _CallablePackage
