"""Models: the NeuroGame classifier and the word-vector baselines (Hugging Face), game heads, and models of images.

Where transformers is installed, importing this package registers the classifiers with AutoConfig, AutoModel and
AutoModelForSequenceClassification. A command that may not need them puts that off (`spinformer._base.deferred`).
"""

import importlib
from typing import TYPE_CHECKING

from spinformer._base.deferred import at_import
from spinformer._base.lazy import lazy_attributes

if TYPE_CHECKING:
    from spinformer.models.attractor import AttractorConfig, AttractorNetwork
    from spinformer.models.baselines import WordConfig, WordForSequenceClassification
    from spinformer.models.game_head import GameHead
    from spinformer.models.loading import load_classifier
    from spinformer.models.masked import MaskedClassifier
    from spinformer.models.neurogame import NeuroGameConfig, NeuroGameForSequenceClassification, NeuroGameModel

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

REGISTERED = ("spinformer.models.baselines", "spinformer.models.neurogame")

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "spinformer.models.attractor": ("AttractorConfig", "AttractorNetwork"),
        "spinformer.models.baselines": ("WordConfig", "WordForSequenceClassification"),
        "spinformer.models.game_head": ("GameHead",),
        "spinformer.models.loading": ("load_classifier",),
        "spinformer.models.masked": ("MaskedClassifier",),
        "spinformer.models.neurogame": ("NeuroGameConfig", "NeuroGameForSequenceClassification", "NeuroGameModel"),
    },
)


def _register() -> None:
    try:
        for module in REGISTERED:
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise


at_import(_register)
