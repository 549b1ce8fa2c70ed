"""What the NeuroGame models give back."""

from dataclasses import dataclass

from torch import Tensor
from transformers.modeling_outputs import BaseModelOutputWithPooling, SequenceClassifierOutput

from spinformer.attention.output import NeuroGameOutput


@dataclass
class NeuroGameModelOutput(BaseModelOutputWithPooling):
    """last_hidden_state: x, (B, n, d), what the head reads; pooler_output: z, (B, d), of head "joint" (B, H, d); game:
    all of the game, where one was played and there is no other head beside it.
    """

    game: NeuroGameOutput | None = None


@dataclass
class NeuroGameClassifierOutput(SequenceClassifierOutput):
    """loss and logits, and with output_game=True `game`: fields, couplings, attention, values and diagnostics; or, of a
    grounded classifier, `features`, a, (B, n, dim + H), from whose sums its game reads the value of any coalition.
    each: of a joint classifier, the logits of every head, (B, H, C); `logits` are then their mean answer.
    """

    game: NeuroGameOutput | None = None
    features: Tensor | None = None
    each: Tensor | None = None
