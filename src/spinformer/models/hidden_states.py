"""Hidden states of any Hugging Face classifier."""

from collections.abc import Sequence
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from spinformer._base.shared_state import attention_of_any_shape, evaluation_mode
from spinformer.models.outputs import logits_in


def encoder(model: Any) -> Any:
    """The part of a classifier that has layers: its base model, or the encoder which that wraps in turn."""
    base = model.base_model
    inner = getattr(base, "encoder", None)
    return inner if hasattr(inner, "base_model") else base  # a stack of layers alone is no model


def max_tokens(model: Any) -> int | None:
    """The number of tokens that have a learnt position; None for a model without a table of positions."""
    table = position_table(model)
    return None if table is None else table.num_embeddings - first_position(table)


def position_table(model: Any) -> nn.Embedding | None:
    """The learnt vectors of positions; None for a model that has no such table."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and name.rpartition(".")[2] == "position_embeddings":
            return module
    return None


def first_position(table: nn.Embedding) -> int:
    """The row of the first token: after the one for padding, where there is one, as in RoBERTa."""
    return 0 if table.padding_idx is None else table.padding_idx + 1


def vocabulary_size(model: Any) -> int | None:
    """The number of tokens that have an embedding; None where the model does not say."""
    embeddings = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    return getattr(embeddings, "num_embeddings", None)


def hidden_width(model: Any) -> int:
    """d, the width of the hidden states."""
    return _config_value(model, "hidden_size")


def layer_count(model: Any) -> int:
    """L, the number of layers above the embeddings."""
    return _config_value(model, "num_hidden_layers")


def resolve_layers(model: Any, layers: Sequence[int] | None) -> tuple[int, ...]:
    """Layers counted from 0, the embeddings, to L; None is the middle one and the last."""
    last = layer_count(model)
    if layers is None:
        return (last // 2, last) if last else (0,)
    if not isinstance(layers, Sequence) or not all(type(layer) is int for layer in layers):
        raise TypeError(f"layers must be a list of integers; got {layers!r:.60}")
    if not layers or not all(-last - 1 <= layer <= last for layer in layers):
        raise ValueError(f"layers must be numbers from 0, the embeddings, to {last}, or from -1 down; got {layers}")
    return tuple(layer % (last + 1) for layer in layers)


def hidden_states(model: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
    """One pass: logits, (B, classes), and the states of the embeddings and of every layer, (B, n, d) each."""
    encoder_outputs: list[Any] = []
    thread = get_ident()  # others may use the same model

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        if get_ident() == thread:
            encoder_outputs.append(output)

    handle = encoder(model).register_forward_hook(keep)
    try:
        with attention_of_any_shape:
            output = model(**inputs, output_hidden_states=True)
    finally:
        handle.remove()
    for candidate in (output, *encoder_outputs):
        states = getattr(candidate, "hidden_states", None)
        if states is not None:
            return logits_in(output, model), states
    raise ValueError(f"{type(model).__name__} gives no hidden states")


def frozen_states(model: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
    """As `hidden_states`, of the model in evaluation mode and without gradients."""
    with torch.no_grad(), evaluation_mode(model):
        return hidden_states(model, inputs)


def _config_value(model: Any, name: str) -> int:
    value = getattr(getattr(encoder(model), "config", None), name, None)
    if value is None:
        raise ValueError(f"hidden states need a model whose configuration has {name}; {type(model).__name__} has none")
    return int(value)
