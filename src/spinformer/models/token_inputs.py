"""What goes into a classifier's forward pass: token ids, masks and labels, checked before torch meets them.

Contents are looked at on the CPU alone: a GPU would have to wait for the answer at every step.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spinformer._base import checks

IGNORED = -100  # a label that torch's cross-entropy leaves out


def check_ids(ids: Tensor, embedding: nn.Module) -> None:
    """Token ids, (B, n) integers, each with a row in the table of embeddings."""
    _integers("input_ids", ids, 2)
    size = getattr(embedding, "num_embeddings", None)
    if size is not None and _readable(ids):
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= size:
            raise ValueError(f"input_ids must be from 0 to {size - 1}, the model's tokens; got {low} to {high}")


def check_attention(mask: Tensor, shape: Sequence[int]) -> None:
    """An attention mask, (B, n), with at least one token in every row."""
    checks.shape("attention_mask", mask, shape)
    if _readable(mask) and not bool(mask.bool().any(1).all()):
        raise ValueError("attention_mask has no token at all in some row; every row needs at least one")


def check_labels(labels: Tensor, rows: int, classes: int) -> None:
    """Class positions, (B,) integers; IGNORED where a row has none."""
    _integers("labels", labels, 1)
    checks.shape("labels", labels, (rows,))
    if _readable(labels):
        low, high = (int(end) for end in labels.masked_fill(labels == IGNORED, 0).aminmax())
        if low < 0 or high >= classes:
            raise ValueError(f"labels must be from 0 to {classes - 1}; got {low} to {high}")


def is_any_of(input_ids: Tensor, ids: Sequence[int]) -> Tensor:
    """torch.isin(input_ids, ids) without a copy of `ids` to the device, for which the device would have to wait."""
    matches = torch.zeros_like(input_ids, dtype=torch.bool)
    for token in ids:
        matches |= input_ids == token
    return matches


def _integers(name: str, tensor: Tensor, dims: int) -> None:
    checks.instance(name, tensor, Tensor)
    wrong = tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool
    if wrong or tensor.dim() != dims:
        raise ValueError(f"{name} must be integers of {dims} dimension(s); got {tensor.dtype} {tuple(tensor.shape)}")


def _readable(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and bool(tensor.numel()) and not torch.compiler.is_compiling()
