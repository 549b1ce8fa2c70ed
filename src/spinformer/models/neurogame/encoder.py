"""The encoder under a pooling head: built without parts that no head uses."""

import inspect
from typing import Any

from transformers import AutoModel, PreTrainedConfig


def pooler_option(config: PreTrainedConfig) -> dict[str, bool]:
    """Options that build an encoder without a pooler of its own, which nothing here would use or train."""
    kind: Any = AutoModel._model_mapping[type(config)]
    kind = kind[0] if isinstance(kind, tuple) else kind
    optional = "add_pooling_layer" in inspect.signature(kind).parameters
    return {"add_pooling_layer": False} if optional else {}


def set_dropout(config: PreTrainedConfig, dropout: float) -> None:
    """Replace every dropout probability."""
    for name, value in vars(config).items():
        if "dropout" in name and isinstance(value, float):
            setattr(config, name, dropout)
