"""Small real data of the clone: hidden states of sentence pairs (NOTICE.md) and sentences with "not" and "very"."""

import json
from dataclasses import dataclass

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import layer_norm

from research.paths import DATA

ENCODER_SAMPLE = DATA / "snli_minilm.safetensors"
NEGATION = DATA / "negation.jsonl"


@dataclass(frozen=True)
class EncoderSample:
    """Hidden states of real sentence pairs, padded on the right.

    hidden: (B, n, 384), last hidden states of all-MiniLM-L6-v2; mask: (B, n), true for real tokens; special: (B, n),
    true for [CLS] and [SEP]; pairs: premise, hypothesis, label and tokens of each. The first half are short pairs, of
    at most 16 tokens, whose exact values can be enumerated.
    """

    hidden: Tensor
    mask: Tensor
    special: Tensor
    pairs: list[dict[str, object]]

    def normed(self) -> Tensor:
        """Hidden states with the components of each token standardised."""
        return layer_norm(self.hidden, self.hidden.shape[-1:])

    def short(self, max_tokens: int = 16) -> list[Tensor]:
        """Standardised hidden states (n, 384), unpadded, of each pair with at most `max_tokens` tokens."""
        rows = zip(self.normed(), self.mask, strict=True)
        return [hidden[mask] for hidden, mask in rows if int(mask.sum()) <= max_tokens]


def encoder_sample() -> EncoderSample:
    """Read the sample that `python -m research.tools.make_encoder_sample` made from SNLI."""
    with safe_open(ENCODER_SAMPLE, "pt") as file:
        pairs = json.loads(file.metadata()["pairs"])
        flat, flat_special, lengths = (file.get_tensor(name) for name in ("hidden", "special", "lengths"))
    width = int(lengths.max())
    mask = torch.arange(width) < lengths[:, None]
    hidden = torch.zeros(len(lengths), width, flat.shape[-1])
    special = torch.zeros_like(mask)
    hidden[mask], special[mask] = flat.float(), flat_special
    return EncoderSample(hidden, mask, special, pairs)
