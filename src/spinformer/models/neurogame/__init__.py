"""The NeuroGame classifier: any encoder of Hugging Face under any pooling head."""

from spinformer._base.extras import require

require("transformers", extra="nli")

from spinformer.models.neurogame.configuration import NeuroGameConfig  # noqa: E402
from spinformer.models.neurogame.modeling import NeuroGameForSequenceClassification, NeuroGameModel  # noqa: E402
from spinformer.models.neurogame.output import NeuroGameClassifierOutput  # noqa: E402

__all__ = [
    "NeuroGameClassifierOutput",
    "NeuroGameConfig",
    "NeuroGameForSequenceClassification",
    "NeuroGameModel",
]
