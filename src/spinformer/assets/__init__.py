"""Small real data that ships with the package."""

import json
from dataclasses import dataclass
from importlib.resources import as_file, files

import torch
from safetensors import safe_open
from torch import Tensor
from torch.nn.functional import layer_norm

SAMPLE = "snli_minilm.safetensors"


@dataclass(frozen=True)
class EncoderSample:
    """Real sentence pairs as an encoder leaves them, padded on the right.

    hidden: (B, n, 384), last hidden states of all-MiniLM-L6-v2; mask: (B, n), true for real tokens; special: (B, n),
    true for [CLS] and [SEP]; pairs: premise, hypothesis, label and tokens of each. The first half are short pairs, at
    most 16 tokens, for which exact values can be enumerated.
    """

    hidden: Tensor
    mask: Tensor
    special: Tensor
    pairs: list[dict[str, object]]

    def normed(self) -> Tensor:
        """Hidden states with each token's components standardised."""
        return layer_norm(self.hidden, self.hidden.shape[-1:])

    def short(self, most: int = 16) -> list[Tensor]:
        """Standardised hidden states (n, 384) of the pairs with at most so many tokens, unpadded."""
        rows = zip(self.normed(), self.mask, strict=True)
        return [hidden[mask] for hidden, mask in rows if int(mask.sum()) <= most]


def encoder_sample() -> EncoderSample:
    """The sample that `tools/make_encoder_sample.py` made from SNLI (see NOTICE.md beside it)."""
    with as_file(files(__name__) / SAMPLE) as path, safe_open(path, "pt") as file:
        pairs = json.loads(file.metadata()["pairs"])
        flat, flat_special, lengths = (file.get_tensor(name) for name in ("hidden", "special", "lengths"))
    width = int(lengths.max())
    mask = torch.arange(width) < lengths[:, None]
    hidden = torch.zeros(len(lengths), width, flat.shape[-1])
    special = torch.zeros_like(mask)
    hidden[mask], special[mask] = flat.float(), flat_special
    return EncoderSample(hidden, mask, special, pairs)
