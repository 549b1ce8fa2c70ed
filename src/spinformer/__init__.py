"""Which words and which pairs of words decided, for the classifier you already have; and attention as physics.

    explainer = spinformer.Explainer(model, tokenizer)
    print(explainer("A man sleeps.", "Nobody is awake."))

`import spinformer` needs torch alone. Names are loaded when they are used; one whose extra is missing says in one line
what to install.
"""

from typing import TYPE_CHECKING

from spinformer._base.lazy import lazy_attributes

if TYPE_CHECKING:
    from spinformer.attention import AttractorAttention, NeuroGameAttention
    from spinformer.explain.explainer import Explainer
    from spinformer.explain.explanation import Explanation
    from spinformer.explain.explanation_set import ExplanationSet
    from spinformer.explain.one_line import explain, ground
    from spinformer.models.loading import load_classifier

__version__ = "0.2.0"

__all__ = [
    "AttractorAttention",
    "Explainer",
    "Explanation",
    "ExplanationSet",
    "NeuroGameAttention",
    "__version__",
    "explain",
    "ground",
    "load_classifier",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "spinformer.attention": ("AttractorAttention", "NeuroGameAttention"),
        "spinformer.explain.explainer": ("Explainer",),
        "spinformer.explain.one_line": ("explain", "ground"),
        "spinformer.explain.explanation": ("Explanation",),
        "spinformer.explain.explanation_set": ("ExplanationSet",),
        "spinformer.models.loading": ("load_classifier",),
    },
    extras={
        "spinformer.explain.explainer": ("transformers", "nli"),
        "spinformer.explain.one_line": ("transformers", "nli"),
        "spinformer.models.loading": ("transformers", "nli"),
    },
)
