"""Masked passes without the hidden tokens: the same answers from fewer tokens.

A token that no other token may look at changes nothing, unless it is the one that the answer is read from. So it can be
left out, if every other token keeps its position. Models with a table of positions take positions as an input; whether
a model answers the same is measured on a few rows before it is relied upon (`same_answers`).
"""

from typing import Any

import torch
from torch import Tensor

from spinformer._base.outputs import Outputs
from spinformer.models.hidden_states import first_position, position_table
from spinformer.models.outputs import answers_of, logits_of

# How far two answers may be apart to be the same, as a share of what hiding words changes in them, and in any case;
# and the rows that they are compared on, at most.
SHARE, TOLERANCE, ROWS = 1e-2, 1e-4, 8
ROUNDING = 1e-6


def position_offset(model: Any) -> int | None:
    """The position of the first token; None for a model without a table of positions, which cannot be packed."""
    table = position_table(model)
    return None if table is None else first_position(table)


def move_together(inputs: dict[str, Tensor], visible: Tensor, tokens: int, padding: int) -> dict[str, Tensor]:
    """The visible tokens, in their order, without the others: (R, tokens) of every input (R, n).

    tokens: the largest number of visible ones in a row; padding: the id of the tokens that fill up shorter rows.
    """
    return _gather(inputs, visible, _order(visible, tokens), padding)


def pack(inputs: dict[str, Tensor], visible: Tensor, tokens: int, padding: int, offset: int) -> dict[str, Tensor]:
    """As `move_together`, with the positions that the tokens had."""
    order = _order(visible, tokens)
    return {**_gather(inputs, visible, order, padding), "position_ids": order + offset}


def _order(visible: Tensor, tokens: int) -> Tensor:
    """Columns of the visible tokens, then of others, (R, tokens)."""
    return (~visible).long().argsort(dim=-1, stable=True)[:, :tokens]


def _gather(inputs: dict[str, Tensor], visible: Tensor, order: Tensor, padding: int) -> dict[str, Tensor]:
    moved = {name: value.gather(1, order) for name, value in inputs.items()}
    moved["attention_mask"] = visible.gather(1, order).long()
    moved["input_ids"] = moved["input_ids"].masked_fill(~moved["attention_mask"].bool(), padding)
    return moved


@torch.no_grad()
def same_answers(
    model: Any, outputs: Outputs, inputs: dict[str, Tensor], visible: Tensor, padding: int, offset: int
) -> bool | None:
    """Whether the model answers the same of packed rows as of masked ones; None where these rows do not tell.

    They tell if a hidden token comes before a visible one in one of them, and if the last word is hidden in one.
    """
    real = inputs["attention_mask"].bool()
    hidden = real & ~visible
    before = (hidden.long().cumsum(1) > 0) & visible
    last = (real * torch.arange(1, real.shape[1] + 1, device=real.device)).argmax(1, keepdim=True)
    moved, ended = (
        before.any(1),
        hidden.gather(1, (last - 1).clamp_min(0)).squeeze(1) | hidden.gather(1, last).squeeze(1),
    )
    if not bool(moved.any()) or not bool((moved & ended).any()):
        return None
    rows = torch.cat([(moved & ended).nonzero()[: ROWS // 2, 0], moved.nonzero()[: ROWS // 2, 0]])
    some, seen = {name: value[rows] for name, value in inputs.items()}, visible[rows]
    plain = {**some, "attention_mask": seen.long()}
    packed = pack(some, seen, int(seen.sum(1).max()), padding, offset)
    try:
        first, second = (answers_of(logits_of(model, each), outputs) for each in (plain, packed))
    except TypeError:  # it takes no positions
        return False
    apart, change = (first - second).abs().max(), (first.amax(0) - first.amin(0)).max()
    return bool(apart <= min(TOLERANCE, SHARE * float(change) + ROUNDING))
