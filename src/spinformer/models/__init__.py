"""Models: the NeuroGame classifier and the word-vector baselines (Hugging Face), game heads, and models of images.

Where transformers is installed, importing this package registers the classifiers with AutoConfig, AutoModel and
AutoModelForSequenceClassification.
"""

from typing import NoReturn

from spinformer._base.extras import require
from spinformer.models.attractor import AttractorConfig, AttractorNetwork
from spinformer.models.game_head import GameHead
from spinformer.models.loading import load_classifier
from spinformer.models.masked import MaskedClassifier

try:
    from spinformer.models.baselines import WordConfig, WordForSequenceClassification
    from spinformer.models.neurogame import NeuroGameConfig, NeuroGameForSequenceClassification, NeuroGameModel
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise

__all__ = [
    "AttractorConfig",
    "AttractorNetwork",
    "GameHead",
    "MaskedClassifier",
    "NeuroGameConfig",
    "NeuroGameForSequenceClassification",
    "NeuroGameModel",
    "WordConfig",
    "WordForSequenceClassification",
    "load_classifier",
]


def __getattr__(name: str) -> NoReturn:
    """Names of models that need transformers, where it is not installed."""
    if name in __all__:
        require("transformers", extra="nli")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
