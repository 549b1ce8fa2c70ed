"""What a NeuroGame classifier is made of: an encoder, a pooling head on it, and the options of its game."""

from collections.abc import Sequence
from typing import Any

from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedConfig

from spinformer._base import checks
from spinformer.models.game_head import GameHeadConfig, default_layers
from spinformer.models.pooling import POOLING_HEADS, PoolingHead
from spinformer.models.removed import drop_removed


class NeuroGameConfig(PreTrainedConfig):
    """encoder: configuration of any encoder that AutoModel knows; head: name of a pooling head (`POOLING_HEADS`).

    game: options of `spinformer.attention.NeuroGameAttention` (heads, head_dim, temperature, samples, eval_samples,
    preset and its settings), for pooling heads that have this layer. grounding: options of
    `spinformer.models.game_head.GameHeadConfig` (layers, heads, dim, hidden, readout), for pooling heads with a game
    head beside them. residual: whether the first token's vector is added to the layer's output. classifier_layers: m of
    NGT Eq. 28; dropout: before each of its linear maps; special_ids: tokens that the tokenizer adds, never players of a
    grounded game, nor of the layer's where its option `special_tokens` is false.
    """

    model_type = "neurogame"
    keys_to_ignore_at_inference = ["head_logits"]  # of its outputs a Trainer keeps the logits  # noqa: RUF012

    def __init__(
        self,
        encoder: dict[str, Any] | PreTrainedConfig | None = None,
        head: str = "neurogame",
        game: dict[str, Any] | None = None,
        grounding: dict[str, Any] | None = None,
        residual: bool = False,
        classifier_layers: int = 1,
        dropout: float = 0.1,
        special_ids: Sequence[int] = (),
        **kwargs: Any,
    ) -> None:
        kwargs = drop_removed(kwargs, layers=[])
        checks.at_least("classifier_layers", classifier_layers, 0)
        checks.number("dropout", dropout)
        checks.flag("residual", residual)
        checks.items("special_ids", special_ids, int)
        for name, options in (("game", game), ("grounding", grounding)):
            if options is not None:
                checks.instance(name, options, dict)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1); got {dropout}")
        self.encoder = _encoder_config(encoder)
        self.head = POOLING_HEADS[head].name
        self.game = dict(game or {})
        self.grounding = dict(grounding or {})
        self.residual = residual
        self.classifier_layers = classifier_layers
        self.dropout = dropout
        self.special_ids = list(special_ids)
        super().__init__(**kwargs)

    @property
    def pooling_head(self) -> PoolingHead:
        """The head that `head` names."""
        return POOLING_HEADS[self.head]

    @property
    def hidden_size(self) -> int:
        """d, the width of the encoder."""
        return int(self.encoder.hidden_size)

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return int(self.num_labels or 0)

    def game_head_config(self) -> GameHeadConfig:
        """The sizes of the game head, with what follows from the encoder and the classes filled in."""
        count = int(getattr(self.encoder, "num_hidden_layers", 1))
        options = {"layers": default_layers(count), "dropout": self.dropout, **self.grounding}
        return GameHeadConfig.from_options(width=self.hidden_size, classes=self.classes or 2, **options)

    @property
    def max_position_embeddings(self) -> int | None:
        """The maximal number of tokens that the encoder takes, where it says so."""
        return getattr(self.encoder, "max_position_embeddings", None)


def _encoder_config(encoder: dict[str, Any] | PreTrainedConfig | None) -> PreTrainedConfig:
    if encoder is None:  # Hugging Face builds every configuration once without arguments
        return AutoConfig.for_model("bert")
    if isinstance(encoder, dict):
        options = dict(encoder)
        if "model_type" not in options:
            raise ValueError("encoder must name its model_type, as the configurations of transformers do")
        kind = options.pop("model_type")
        if kind not in CONFIG_MAPPING:
            raise ValueError(f"encoder must name a model_type that transformers knows; got {kind!r:.60}")
        encoder = AutoConfig.for_model(kind, **options)
    checks.instance("encoder", encoder, PreTrainedConfig)
    if getattr(encoder, "is_encoder_decoder", False):
        raise ValueError(f"encoder must be an encoder alone; {encoder.model_type!r} is an encoder with a decoder")
    if not hasattr(encoder, "hidden_size"):
        raise ValueError(f"encoder must have a hidden_size; {encoder.model_type!r} has none")
    return encoder
