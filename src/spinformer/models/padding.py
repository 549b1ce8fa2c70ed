"""Padding: which token fills up the shorter rows of a batch, and whether a model's answers change with it.

Padding comes at the end of a row, hidden by the attention mask, and most models answer as without it. XLNet reads its
answer from the last position, padding or not; FNet has no attention mask; Nystromformer mixes neighbours whatever the
mask says. Whether a model is of that kind is measured once, on one row, when rows of different lengths first meet. If
it is, only rows of one length share a batch.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional

from spinformer._base.shared_state import attention_of_any_shape, evaluation_mode
from spinformer.models.functions import FunctionModel
from spinformer.models.hidden_states import frozen_states
from spinformer.models.outputs import logits_of

# The difference of logits that counts, as a share of the largest, and in any case; in half precision so many roundings.
SHARE, LEAST, ROUNDINGS = 1e-3, 1e-6, 8

# What was measured, for models in use.
_MEASURED: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def set_padding(model: Any, tokenizer: Any) -> None:
    """Batches need a padding token: where there is none, the end of the text or the unknown word serves as it.

    The tokenizer and the model's configuration are told so; one that has a padding token keeps it.
    """
    if not hasattr(tokenizer, "pad_token_id"):
        return
    if tokenizer.pad_token_id is None and (token := tokenizer.eos_token or tokenizer.unk_token):
        tokenizer.pad_token = token
    inner = getattr(model.config, "get_text_config", None)
    for config in (model.config, model.config if inner is None else inner()):
        if getattr(config, "pad_token_id", None) is None:
            config.pad_token_id = tokenizer.pad_token_id


def row_ends(mask: Tensor) -> Tensor:
    """Of each row of an attention mask, (B, n), the number of tokens before the padding at its end, (B,)."""
    return (mask.bool() * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(1)


def known_to_read_padding(model: Any) -> bool | None:
    """What `reads_padding` found of this model; None where it was not asked yet. A function is given texts."""
    return False if isinstance(model, FunctionModel) else _MEASURED.get(model)


@torch.no_grad()
def reads_padding(model: Any, row: dict[str, Tensor], tokens: int) -> bool:
    """Whether padding changes the answer: measured on the first row that is asked about, afterwards known.

    row: inputs of one text, (1, n) each, of which all after so many tokens is padding.
    """
    known = known_to_read_padding(model)
    if known is None:
        device = next(model.parameters()).device
        padded = {name: value.to(device) for name, value in row.items()}
        alone = {name: value[:, :tokens] for name, value in padded.items()}
        with evaluation_mode(model), attention_of_any_shape:
            one, other = (logits_of(model, inputs) for inputs in (padded, alone))
        share = max(SHARE, ROUNDINGS * torch.finfo(one.dtype).eps)
        apart, size = (one - other).abs().max(), other.abs().max()
        known = _MEASURED[model] = not bool(apart <= share * size + LEAST)
    return known


def rows_together(model: Any, inputs: dict[str, Tensor]) -> list[list[int]]:
    """The numbers of the rows that may share a batch: all of them, or those of one length each."""
    every = list(range(len(inputs["attention_mask"])))
    if len(every) == 1 or known_to_read_padding(model) is False:  # known, so a GPU need not be waited for
        return [every]
    ends: list[int] = row_ends(inputs["attention_mask"]).tolist()
    shortest = min(every, key=ends.__getitem__)
    if ends[shortest] == max(ends):
        return [every]
    if not reads_padding(model, {name: value[shortest : shortest + 1] for name, value in inputs.items()}, min(ends)):
        return [every]
    return [[row for row in every if ends[row] == end] for end in sorted(set(ends), reverse=True)]


def full_states(model: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, Sequence[Tensor]]:
    """`frozen_states` of full texts, as if each had come alone."""
    groups = rows_together(model, inputs)
    if len(groups) == 1:
        return frozen_states(model, inputs)
    mask, parts = inputs["attention_mask"], []
    ends, width = row_ends(mask).tolist(), mask.shape[1]
    for rows in groups:
        part = {name: value[rows, : ends[rows[0]]] for name, value in inputs.items()}
        logits, states = frozen_states(model, part)
        parts.append([logits, *(functional.pad(state, (0, 0, 0, width - state.shape[1])) for state in states)])
    order = torch.tensor([row for rows in groups for row in rows]).argsort()
    logits, *states = [torch.cat(each)[order.to(each[0].device)] for each in zip(*parts, strict=True)]
    return logits, states
