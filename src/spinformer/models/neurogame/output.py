"""What the NeuroGame models return."""

from dataclasses import dataclass

from torch import Tensor
from transformers.modeling_outputs import BaseModelOutputWithPooling, SequenceClassifierOutput

from spinformer.attention.output import Diagnostics, NeuroGameOutput


@dataclass
class NeuroGameModelOutput(BaseModelOutputWithPooling):
    """last_hidden_state: x, (B, n, d), what the pooling head reads; pooler_output: z, (B, d), of a pooling head of H
    parts (B, H, d); game: all of the game of the NeuroGame layer, where it is the only pooling head; diagnostics: of
    that game, with output_diagnostics=True.
    """

    game: NeuroGameOutput | None = None
    diagnostics: Diagnostics | None = None


@dataclass
class NeuroGameClassifierOutput(SequenceClassifierOutput):
    """loss and logits, and with output_game=True `game`: fields, couplings, attention, values and diagnostics; or, of a
    classifier with a game head, `features`, a, (B, n, dim + H), from whose sums the game head reads the value of any
    coalition. diagnostics: of the game, with output_diagnostics=True. head_logits: of a pooling head of H parts, the
    logits of each, (B, H, C); `logits` are then the logarithm of their mean probability.
    """

    game: NeuroGameOutput | None = None
    diagnostics: Diagnostics | None = None
    features: Tensor | None = None
    head_logits: Tensor | None = None
