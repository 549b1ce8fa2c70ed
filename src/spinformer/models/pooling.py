"""Pooling heads: from the vectors of the tokens to one vector a text (pooling), and from that to logits (classifier).

A new head is one `PoolingHead` in `POOLING_HEADS`: configuration, models, recipes, help and documents read them there.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from spinformer._base import checks
from spinformer._base.precision import widen
from spinformer._base.registry import Registry
from spinformer.attention.neurogame import NeuroGameAttention
from spinformer.attention.output import Diagnostics, NeuroGameOutput
from spinformer.attention.replay import Replay
from spinformer.attention.spins import SPINS, solve_spins


class Pooled(NamedTuple):
    """What a pooling returns.

    vector: one for each text, (B, d), of H heads (B, H, d); game: where one was played, but it may be missing where it
    was not asked for; diagnostics: of that game.
    """

    vector: Tensor
    game: NeuroGameOutput | None = None
    diagnostics: Diagnostics | None = None


class FirstToken(nn.Module):
    """z = x_1, the vector of the first token, which BERT calls [CLS]."""

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens."""
        return Pooled(hidden[:, 0])


class Mean(nn.Module):
    """z = sum_i x_i / n over the real tokens."""

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens."""
        weights = mask.to(hidden.dtype) / mask.sum(-1, keepdim=True).to(hidden.dtype)
        return Pooled((weights[:, None] @ hidden).squeeze(1))


class SoftmaxAttention(nn.Module):
    """z = sum_i a_i x_i,   a = softmax(w . tanh(W x_i + b)) over the real tokens."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, dim)
        self.score = nn.Linear(dim, 1, bias=False)

    def weights(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """a, (B, n)."""
        scores = self.score(torch.tanh(self.hidden(hidden))).squeeze(-1).float()
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens."""
        weights = self.weights(hidden, mask).to(hidden.dtype)
        return Pooled((weights[:, None] @ hidden).squeeze(1))


class NeuroGamePooling(nn.Module):
    """z = sum_i alpha_i v_i, with alpha from the tokens' game (`NeuroGameAttention`), plus x_1 where `residual`."""

    def __init__(self, dim: int, residual: bool, **game: Any) -> None:
        super().__init__()
        self.attention = NeuroGameAttention(dim, **game)
        self.replay = Replay(self.attention)
        self.residual = residual

    def forward(
        self, hidden: Tensor, mask: Tensor, special: Tensor | None = None, *, output_game: bool = True
    ) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens; special: (B, n), true for special tokens.

        Without output_game, on a GPU, the layer is replayed (`Replay`).
        """
        game = None
        if not output_game and self.replay.layer is self.attention:  # a replica on another GPU has a layer of its own
            pooled, diagnostics = self.replay(hidden, mask, special)
        else:
            game = self.attention(hidden, mask, special=special)
            pooled, diagnostics = game.pooled, game.diagnostics  # NGT Eqs. 26, 27
        return Pooled(pooled + hidden[:, 0] if self.residual else pooled, game, diagnostics)


class SpinPooling(nn.Module):
    """z_k = <s_k>, the mean field of S spins that the tokens' Ising model is written in (`solve_spins`)

    with weights p_ik = tanh(u_k . x_i + b_k) of token i in spin k: NGT section 7.3, where the spins are passed to the
    classifier. Section 3.12 passes sum_i alpha_i v_i instead, with one spin for each token: that is `NeuroGamePooling`.

    spins: S; game: options of `NeuroGameAttention`, with one attention head. The game that it returns is the tokens',
    but for its diagnostics of the mean field, which are the S spins'. Its attention is no part of z.
    """

    def __init__(self, dim: int, spins: int = SPINS, **game: Any) -> None:
        super().__init__()
        checks.at_least("spins", spins, 1)
        self.attention = NeuroGameAttention(dim, **game)
        if self.attention.heads != 1:
            raise ValueError(f"the spins of section 7.3 have one attention head; got heads {self.attention.heads}")
        self.attention.output = nn.Identity()  # W_O of NGT Eq. 27 has no part in z
        self.projection = nn.Linear(dim, spins)

    def forward(
        self, hidden: Tensor, mask: Tensor, special: Tensor | None = None, *, output_game: bool = True
    ) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens; special: (B, n), true for special tokens."""
        layer = self.attention
        game = layer(hidden, mask, special=special)
        weights = torch.tanh(widen(self.projection(hidden))).masked_fill(~mask[..., None], 0.0)  # (B, n, S)
        solved = solve_spins(game, weights, layer.temperature, layer.settings)
        mean_field = (one[:, None] for one in (solved.residual, solved.converged, solved.steps))
        pooled = solved.magnetization.to(self.projection.weight.dtype)
        diagnostics = Diagnostics(game.diagnostics.ess, *mean_field)
        return Pooled(pooled, replace(game, pooled=pooled, diagnostics=diagnostics), diagnostics)


class JointPooling(nn.Module):
    """z = (z_1 ... z_H), the vectors of several poolings, (B, H, d)."""

    def __init__(self, poolings: Iterable[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(poolings)

    def forward(self, hidden: Tensor, mask: Tensor, special: Tensor | None = None) -> Pooled:
        """hidden: (B, n, d); mask: (B, n), true for real tokens; special: (B, n), true for special tokens."""
        return Pooled(torch.stack([self._vector(pooling, hidden, mask, special) for pooling in self.each], 1))

    @staticmethod
    def _vector(pooling: nn.Module, hidden: Tensor, mask: Tensor, special: Tensor | None) -> Tensor:
        options = {"output_game": False} if isinstance(pooling, NeuroGamePooling) else {}
        vector: Tensor = pooling(hidden, mask, special, **options)[0]
        return vector


class JointClassifier(nn.Module):
    """o_h = FFN_h(z_h): logits of every head, (B, H, C), from vectors (B, H, d)."""

    def __init__(self, classifiers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.each = nn.ModuleList(classifiers)

    def forward(self, vectors: Tensor) -> Tensor:
        """vectors: (B, H, d)."""
        return torch.stack([ffn(z) for ffn, z in zip(self.each, vectors.unbind(1), strict=True)], 1)


def log_mean_probability(logits: Tensor) -> Tensor:
    """log (1/H) sum_h softmax(o_h), (B, C), of the logits o, (B, H, C), of H heads."""
    return logits.float().log_softmax(-1).logsumexp(1) - math.log(logits.shape[1])


def loss_rows(logits: Tensor, head_logits: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and targets whose mean loss is a classifier's: a row for each text, or for each text and each of H heads.

    logits: (B, C); head_logits: (B, H, C), or None for a single head; targets: (B,) or (B, C).
    """
    if head_logits is None:
        return logits.float(), targets
    return head_logits.float().flatten(0, 1), targets.repeat_interleave(head_logits.shape[1], 0)  # (B H, C)


def feed_forward(dim: int, labels: int, *, layers: int, dropout: float) -> nn.Sequential:
    """h = GELU(W h + b), `layers` times, then logits o = W h + b, with dropout before each linear map."""
    steps: list[nn.Module] = []
    for _ in range(layers):
        steps += [nn.Dropout(dropout), nn.Linear(dim, dim), nn.GELU()]  # NGT Eq. 28
    return nn.Sequential(*steps, nn.Dropout(dropout), nn.Linear(dim, labels))  # NGT Eq. 29


class PoolingOptions(Protocol):
    """What a pooling head reads of the configuration of its classifier (`NeuroGameConfig`)."""

    residual: bool
    classifier_layers: int
    dropout: float
    game: dict[str, Any]

    @property
    def hidden_size(self) -> int:
        """d, the width of the encoder."""

    @property
    def classes(self) -> int:
        """C, the number of classes."""


def default_classifier(options: PoolingOptions) -> nn.Module:
    """The feed-forward network of the paper (NGT Eqs. 28, 29)."""
    return feed_forward(options.hidden_size, options.classes, layers=options.classifier_layers, dropout=options.dropout)


def spin_classifier(options: PoolingOptions) -> nn.Module:
    """The same network on S spins."""
    spins = int(options.game.get("spins", SPINS))
    return feed_forward(spins, options.classes, layers=options.classifier_layers, dropout=options.dropout)


def released_classifier(options: PoolingOptions) -> nn.Module:
    """What the authors' published scripts run in place of the game: d -> 128, tanh, then 256 and 128, each with layer
    norm, GELU and dropout, then the logits.
    """

    def block(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.GELU(), nn.Dropout(options.dropout)]

    first = [nn.Linear(options.hidden_size, 128), nn.Tanh()]
    return nn.Sequential(*first, *block(128, 256), *block(256, 128), nn.Linear(128, options.classes))


@dataclass(frozen=True)
class PoolingHead:
    """A way to make one vector of the tokens, and the classifier on it.

    name: in configurations and on the command line; summary: one line for help texts and documents. pooling,
    classifier: build the two modules from a configuration; the pooling is called with hidden states (B, n, d), the mask
    of real tokens (B, n) and that of special tokens (B, n) or None, and returns `Pooled`. uses_layer: whether the
    pooling has a NeuroGame layer, and so takes its options (`game` of the configuration). has_game_head: whether a game
    head is trained beside the classifier. parts: the names of other pooling heads that it holds side by side, each with
    its classifier.
    """

    name: str
    summary: str
    pooling: Callable[[PoolingOptions], nn.Module]
    classifier: Callable[[PoolingOptions], nn.Module] = default_classifier
    uses_layer: bool = False
    has_game_head: bool = False
    parts: tuple[str, ...] = ()

    @property
    def plays(self) -> bool:
        """Whether its pooling returns the game that it played."""
        return self.uses_layer and not self.parts


POOLING_HEADS = Registry[PoolingHead]("pooling head")


def joint_head(name: str, summary: str, parts: tuple[str, ...]) -> PoolingHead:
    """A head that holds the heads `parts` side by side."""
    heads = [POOLING_HEADS[part] for part in parts]
    return PoolingHead(
        name,
        summary,
        pooling=lambda options: JointPooling(head.pooling(options) for head in heads),
        classifier=lambda options: JointClassifier(head.classifier(options) for head in heads),
        uses_layer=any(head.uses_layer for head in heads),
        parts=parts,
    )


POOLING_HEADS.register(
    PoolingHead(
        "neurogame",
        "attention from the game of the tokens: sections 3.11 and 3.12 of the NeuroGame paper",
        lambda options: NeuroGamePooling(options.hidden_size, options.residual, **options.game),
        uses_layer=True,
    )
)
POOLING_HEADS.register(PoolingHead("cls", "the first token's vector", lambda options: FirstToken()))
POOLING_HEADS.register(PoolingHead("mean", "the mean of the tokens' vectors", lambda options: Mean()))
POOLING_HEADS.register(
    PoolingHead("attention", "softmax attention", lambda options: SoftmaxAttention(options.hidden_size))
)
POOLING_HEADS.register(
    PoolingHead(
        "released",
        "the first token's vector under the classifier of the authors' published scripts",
        lambda options: FirstToken(),
        released_classifier,
    )
)
POOLING_HEADS.register(
    PoolingHead(
        "spins",
        "128 spins that the tokens are projected to: sections 7.3 and 7.4 of the paper, against 3.11 and 3.12",
        lambda options: SpinPooling(options.hidden_size, **options.game),
        spin_classifier,
        uses_layer=True,
    )
)
POOLING_HEADS.register(
    PoolingHead(
        "grounded",
        "the first token's vector, with a game head trained beside the classifier",
        lambda options: FirstToken(),
        has_game_head=True,
    )
)
POOLING_HEADS.register(
    joint_head(
        "joint",
        "four heads at once, to prepare an encoder for any of them",
        ("cls", "mean", "attention", "neurogame"),
    )
)
