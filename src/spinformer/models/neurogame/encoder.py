"""The encoder under a head: loaded with all of its weights, built without what no head would use."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModel, PreTrainedConfig

from spinformer.models import checkpoints


def pretrained(path: str, config: PreTrainedConfig) -> Any:
    """The encoder, with all of its weights."""
    with checkpoints.reading(path), checkpoints.quiet():
        encoder, info = AutoModel.from_pretrained(
            path,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **no_pooler(config),
        )
    checkpoints.check_weights(path, info, ("mismatched_keys", "missing_keys"))
    return encoder


def no_pooler(config: PreTrainedConfig) -> dict[str, bool]:
    """Encoders that come with a pooler of their own are built without it: nothing here would use or train it."""
    kind: Any = AutoModel._model_mapping[type(config)]
    kind = kind[0] if isinstance(kind, tuple) else kind
    takes = "add_pooling_layer" in inspect.signature(kind).parameters
    return {"add_pooling_layer": False} if takes else {}


def set_dropout(config: PreTrainedConfig, dropout: float) -> None:
    """Replace every dropout probability."""
    for name, value in vars(config).items():
        if "dropout" in name and isinstance(value, float):
            setattr(config, name, dropout)


def among(input_ids: Tensor, ids: Sequence[int]) -> Tensor:
    """Which tokens are one of these, as torch.isin says; nothing is copied to the device, which would have to wait."""
    found = torch.zeros_like(input_ids, dtype=torch.bool)
    for one in ids:
        found |= input_ids == one
    return found
