"""BERT (Devlin et al. 2019) in evaluation, and the classifiers on it, with the names and the answers of transformers'.

    x_0 = LN(word + side + position)
    y_l = LN(x_l + W [softmax(q k^T / sqrt(d / H)) v] + b),   x_{l+1} = LN(y_l + W gelu(W y_l + b) + b)

Names of weights are as in transformers, so the same files fit, and `weights_digest` is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from spinformer.models.hidden_states import encoder
from spinformer.models.plain.options import PlainConfig
from spinformer.models.pooling import POOLING_HEADS, Pooled
from spinformer.models.token_inputs import is_any_of


@dataclass(frozen=True)
class PlainOutput:
    """logits: (B, C); hidden_states: of the embeddings and of every layer, (B, n, d) each, if they were asked for."""

    logits: Tensor
    hidden_states: Sequence[Tensor] | None = None


class PlainLayer(nn.Module):
    """x_l -> x_{l+1}: attention of H heads, then a network on each token, each added to what it was given."""

    def __init__(self, config: PlainConfig) -> None:
        super().__init__()
        width, inner, self.heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
        self.attention = nn.ModuleDict(
            {
                "self": nn.ModuleDict({name: nn.Linear(width, width) for name in ("query", "key", "value")}),
                "output": _sum_part(width, config),
            }
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        self.output = _sum_part(inner, config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x: (B, n, d); mask: (B, 1, n, n), true for the tokens that each may look at, None for all."""
        maps: Any = self.attention["self"]
        query, key, value = (
            maps[name](x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for name in ("query", "key", "value")
        )  # (B, H, n, d / H)
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        y = _add(self.attention["output"], seen.transpose(1, 2).flatten(2), x)
        return _add(self.output, functional.gelu(self.intermediate["dense"](y)), y)


class PlainEncoder(nn.Module):
    """x_0 ... x_L of token ids; pooled: whether there is a pooler, tanh(W x + b) on the first token."""

    def __init__(self, config: PlainConfig, *, pooled: bool) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id),
                "position_embeddings": nn.Embedding(config.max_position_embeddings, width),
                "token_type_embeddings": nn.Embedding(config.type_vocab_size, width),
                "LayerNorm": nn.LayerNorm(width, eps=config.layer_norm_eps),
            }
        )
        self.encoder = nn.ModuleDict(
            {"layer": nn.ModuleList(PlainLayer(config) for _ in range(config.num_hidden_layers))}
        )
        if pooled:
            self.pooler = nn.ModuleDict({"dense": nn.Linear(width, width)})

    @property
    def base_model(self) -> "PlainEncoder":
        """Itself: it is the part with layers."""
        return self

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        *,
        every: bool = True,
    ) -> list[Tensor]:
        """All inputs are (B, n); the states are (B, n, d) each; without `every`, the last alone."""
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        parts, layers = self.embeddings, self.encoder["layer"]
        words = parts["word_embeddings"](input_ids) + parts["token_type_embeddings"](token_type_ids)
        x = parts["LayerNorm"](words + parts["position_embeddings"](position_ids))
        seen = attention_mask.bool()
        mask = None if bool(seen.all()) else seen[:, None, None].expand(-1, 1, seen.shape[1], -1)
        states = [x]
        for layer in layers.children():
            x = layer(x, mask)
            states = [*states, x] if every else [x]
        return states


class PlainClassifier(nn.Module):
    """What explanations ask of a classifier of transformers. name_or_path: the folder that it was read from."""

    base_name = "model"  # of all but the classifier, in the names of weights

    def __init__(self, config: PlainConfig, base: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.config, self.name_or_path = config, ""
        self.add_module(self.base_name, base)
        self.classifier = classifier

    @property
    def base_model(self) -> nn.Module:
        """All but the classifier."""
        return self.get_submodule(self.base_name)

    def get_input_embeddings(self) -> nn.Module:
        """The vectors of the tokens."""
        vectors: nn.Module = encoder(self).embeddings["word_embeddings"]
        return vectors

    def vector(self, hidden: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """What the classifier reads, (B, d), of the last states, (B, n, d)."""
        raise NotImplementedError

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, output_hidden_states: bool = False, **inputs: Tensor
    ) -> PlainOutput:
        """inputs: token_type_ids and position_ids, where there are any."""
        states = encoder(self)(input_ids, attention_mask, every=output_hidden_states, **inputs)
        logits = self.classifier(self.vector(states[-1], input_ids, attention_mask))
        return PlainOutput(logits, states if output_hidden_states else None)


class PlainBert(PlainClassifier):
    """o = W tanh(W x_1 + b) + b, from the state of the first token: `BertForSequenceClassification`."""

    base_name = "bert"

    def __init__(self, config: PlainConfig) -> None:
        super().__init__(config, PlainEncoder(config, pooled=True), nn.Linear(config.hidden_size, config.classes))

    def vector(self, hidden: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """tanh(W x_1 + b)"""
        return torch.tanh(encoder(self).pooler["dense"](hidden[:, 0]))


class PlainNeuroGame(PlainClassifier):
    """o = FFN(z), z of a pooling head on the states of all tokens: `NeuroGameForSequenceClassification`."""

    def __init__(self, config: PlainConfig) -> None:
        head = POOLING_HEADS[config.head]
        base = nn.ModuleDict({"encoder": PlainEncoder(config, pooled=False), "pooling": head.pooling(config)})
        super().__init__(config, base, head.classifier(config))
        self.options = {"output_game": False} if head.plays else {}

    def vector(self, hidden: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """z"""
        special = is_any_of(input_ids, self.config.special_ids) if self.config.special_ids else None
        pooling: Any = self.base_model.get_submodule("pooling")
        return Pooled(*pooling(hidden, attention_mask.bool(), special, **self.options)).vector


def _sum_part(width: int, config: PlainConfig) -> nn.ModuleDict:
    """The weights of `_add`, of a network whose last layer is `width` wide."""
    norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
    return nn.ModuleDict({"dense": nn.Linear(width, config.hidden_size), "LayerNorm": norm})


def _add(parts: Any, inner: Tensor, x: Tensor) -> Tensor:
    """LN(x + W inner + b)"""
    total: Tensor = parts["LayerNorm"](parts["dense"](inner) + x)
    return total
