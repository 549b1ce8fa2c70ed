"""Models: the NeuroGame classifier and its baselines (Hugging Face), and models of images (`spinformer.models.vision`).

Using a name from here registers our classifiers with the Auto classes of transformers, which is imported only then.
"""

from typing import TYPE_CHECKING, Any

from spinformer.extras import require

if TYPE_CHECKING:
    from spinformer.models.neurogame import NeuroGameConfig, NeuroGameForSequenceClassification, NeuroGameModel

__all__ = ["NeuroGameConfig", "NeuroGameForSequenceClassification", "NeuroGameModel"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("transformers", extra="nli")
    from spinformer.models import neurogame

    return getattr(neurogame, name)
