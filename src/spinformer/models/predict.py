"""Logits of a classifier for many texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from spinformer._base import checks
from spinformer._base.devices import usable_device
from spinformer._base.progress import progress as bar
from spinformer._base.shared_state import evaluation_mode
from spinformer.data.features import Features, batches_by_length
from spinformer.data.texts import Texts
from spinformer.models.lengths import resolve_max_length


@dataclass(frozen=True)
class Predictions:
    """Of N texts, in their order, on the CPU: logits, (N, C), float32; truncated: the number of texts cut to fit.

    ess, residual, converged: (N, heads), of the game (see `Diagnostics`); None for a model without a NeuroGame layer.
    """

    logits: Tensor
    ess: Tensor | None
    residual: Tensor | None
    converged: Tensor | None
    truncated: int


class PredictOptions(TypedDict, total=False):
    """The options of `predict`."""

    batch_size: int
    max_length: int | None
    device: torch.device | str | None
    bf16: bool
    progress: bool


def predict(
    model: Any,
    tokenizer: Any,
    texts: Texts,
    *,
    batch_size: int = 64,
    max_length: int | None = None,
    device: torch.device | str | None = None,
    bf16: bool = False,
    progress: bool = True,
) -> Predictions:
    """Logits for every text or pair; they do not depend on the batch size.

    Texts of like length share a batch. Pairs of more than max_length tokens (by
    default what the model takes) lose tokens of the longer text first.
    device: where the model is moved (default: where it is); bf16: bfloat16 autocast, on CUDA only. The model runs in
    evaluation mode and is left in its former mode.
    """
    checks.instance("model", model, nn.Module)
    checks.function("tokenizer", tokenizer)
    checks.instance("texts", texts, Texts)
    checks.flag("bf16", bf16)
    checks.at_least("batch_size", batch_size, 1)
    max_length = resolve_max_length(model, tokenizer, max_length)
    if not len(texts):
        raise ValueError(f"{texts.source} has no rows to predict")
    _check_not_empty(texts)
    if device is not None:
        model.to(usable_device(device))
    home = next(model.parameters()).device
    if bf16 and home.type != "cuda":
        raise ValueError(f"bf16 is for CUDA devices alone; the model is on {home}")
    rows = Features(replace(texts, labels=None), tokenizer, max_length, quiet=not progress)
    batches: Iterable[tuple[Tensor, dict[str, Tensor]]] = batches_by_length(rows, tokenizer, batch_size, home)
    if progress:
        batches = bar(batches, texts.source, -(-len(rows) // batch_size))
    plays = bool(getattr(model, "plays", False))
    order: list[Tensor] = []
    columns: list[list[Tensor]] = []
    with (
        evaluation_mode(model),
        torch.inference_mode(),
        torch.autocast(home.type, torch.bfloat16, enabled=bf16),
    ):
        for batch, inputs in batches:
            order.append(batch)
            output = model(**inputs, output_diagnostics=True) if plays else model(**inputs)
            columns.append([output.logits.float(), *(_diagnostics(output) if plays else ())])
    inverse = torch.cat(order).argsort()
    # Copied to the CPU once: a copy after every batch would keep the device waiting.
    logits, *game = [torch.cat(parts).cpu()[inverse] for parts in zip(*columns, strict=True)]
    checks.finite("logits", logits)
    ess, residual, converged = game if plays else (None, None, None)
    return Predictions(logits, ess, residual, converged, rows.truncated)


def _diagnostics(output: Any) -> list[Tensor]:
    diagnostics = output.diagnostics
    return [diagnostics.ess.float(), diagnostics.residual.float(), diagnostics.converged.bool()]


def _check_not_empty(texts: Texts) -> None:
    columns: list[tuple[str, Sequence[str]]] = [("first text" if texts.paired else "text", texts.first)]
    if texts.second is not None:
        columns.append(("second text", texts.second))
    for name, column in columns:
        for row, text in enumerate(column):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"row {row} of {texts.source}, counted from 0, has an empty {name}; got {text!r}")
