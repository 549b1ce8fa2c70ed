"""Whether a model sees what its attention mask hides.

A token that no other token may look at is still looked at by itself. Most encoders read their answer from a special
token, so it makes no difference. A decoder reads it from the last token, which may be hidden; an encoder whose
tokenizer adds no special tokens reads it from the first word; T5 hands all tokens to its decoder; FNet has no attention
mask. Such a model is given padding in the place of hidden tokens: then nothing in its inputs says what the hidden words
are, and a decoder reads its answer from the last token that is not padding.
"""

from typing import Any

import torch
from torch import Tensor

from spinformer._base.outputs import Outputs
from spinformer.models.hidden_states import vocabulary_size
from spinformer.models.outputs import answers_of, logits_of

# Rows on which it is tried, and the difference of two answers that counts.
ROWS, TOLERANCE = 4, 1e-5


@torch.no_grad()
def sees_hidden_tokens(
    model: Any, outputs: Outputs, inputs: dict[str, Tensor], owner: Tensor, special: set[int]
) -> bool:
    """Whether answers change with the first and the last word of a text although the attention mask hides them.

    inputs: of some texts, (B, n) each; owner: as in `Words`; special: ids that are no words.
    """
    some = {name: value[:ROWS] for name, value in inputs.items()}
    ids, tokens = some["input_ids"], torch.arange(owner.shape[1], device=owner.device)
    of_word = owner[:ROWS] >= 0
    last = torch.where(of_word, tokens, -1).amax(1, keepdim=True)
    first = torch.where(of_word, tokens, len(tokens)).amin(1, keepdim=True)
    hidden = (tokens == first) | (tokens == last)
    some["attention_mask"] = some["attention_mask"].masked_fill(hidden, 0)
    most = len(special) + 3  # enough to find two that are words
    ordinary = [token for token in range(min(most, vocabulary_size(model) or most)) if token not in special]
    if len(ordinary) < 2:
        return False
    one, other = (
        answers_of(logits_of(model, {**some, "input_ids": ids.masked_fill(hidden, token)}), outputs)
        for token in ordinary[:2]
    )
    return bool((one - other).abs().max() > TOLERANCE)
