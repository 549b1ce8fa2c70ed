"""The NeuroGame classifier and the baseline heads on the same encoder."""

from spinformer.models.neurogame.configuration import HEADS, NeuroGameConfig
from spinformer.models.neurogame.modeling import NeuroGameForSequenceClassification, NeuroGameModel
from spinformer.models.neurogame.output import NeuroGameClassifierOutput

__all__ = [
    "HEADS",
    "NeuroGameClassifierOutput",
    "NeuroGameConfig",
    "NeuroGameForSequenceClassification",
    "NeuroGameModel",
]
