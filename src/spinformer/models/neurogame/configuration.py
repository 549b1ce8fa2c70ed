"""What a NeuroGame classifier is made of: an encoder, a head on it, and the options of its game."""

from collections.abc import Sequence
from typing import Any

from transformers import AutoConfig, PreTrainedConfig

from spinformer import checks
from spinformer.models.grounding import GroundingConfig, default_layers

HEADS = ("neurogame", "cls", "mean", "attention", "released", "grounded", "joint")


class NeuroGameConfig(PreTrainedConfig):
    """encoder: configuration of any encoder that AutoModel knows; head: what makes one vector of its tokens (`HEADS`).

    game: options of `spinformer.attention.NeuroGameAttention` (heads, head_dim, temperature, samples, eval_samples,
    preset and its settings), for heads that play. grounding: options of `spinformer.models.grounding.GroundingConfig`
    (layers, heads, dim, hidden, readout), for head "grounded": the first token's vector, and beside the classifier a
    game of what it says of parts of the text. Head "joint" is several at once (`JOINT` in `heads`), to prepare an
    encoder for any of them. The other heads are baselines. residual: whether the first token's vector is added to the
    game's output. classifier_layers: m of Eq. 28; dropout: before each of its linear maps; special_ids: tokens that the
    tokenizer adds: never players of a grounded game, nor of the other where its `special_tokens` is false. layers:
    those below the encoder's last, from 0, the embeddings, that the head reads as well.
    """

    model_type = "neurogame"
    keys_to_ignore_at_inference = ["each"]  # of its outputs a Trainer keeps the answer  # noqa: RUF012

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
        layers: Sequence[int] = (),
        **kwargs: Any,
    ) -> None:
        checks.choice("head", head, HEADS)
        checks.at_least("classifier_layers", classifier_layers, 0)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be in [0, 1); got {dropout}")
        self.encoder = _encoder_config(encoder)
        _check_layers(layers, self.encoder)
        self.head = head
        self.game = dict(game or {})
        self.grounding = dict(grounding or {})
        self.residual = residual
        self.classifier_layers = classifier_layers
        self.dropout = dropout
        self.special_ids = list(special_ids)
        self.layers = list(layers)
        super().__init__(**kwargs)

    @property
    def hidden_size(self) -> int:
        """d, the width of the encoder."""
        return int(self.encoder.hidden_size)

    def grounding_config(self) -> GroundingConfig:
        """Of head "grounded": the sizes, with what follows from the encoder and the classes filled in."""
        count = int(getattr(self.encoder, "num_hidden_layers", 1))
        options = {"layers": default_layers(count), "dropout": self.dropout, **self.grounding}
        return GroundingConfig(width=self.hidden_size, classes=int(self.num_labels or 2), **options)

    @property
    def max_position_embeddings(self) -> int | None:
        """The most tokens that the encoder takes, where it says so."""
        return getattr(self.encoder, "max_position_embeddings", None)


def _check_layers(layers: Sequence[int], encoder: PreTrainedConfig) -> None:
    count = int(getattr(encoder, "num_hidden_layers", 1))
    given = list(layers) if isinstance(layers, list | tuple) else [layers]
    if not all(type(one) is int and 0 <= one < count for one in given) or len(set(given)) < len(given):
        raise ValueError(
            f"layers must be different numbers from 0, the embeddings, to {count - 1}, below the encoder's last; "
            f"got {layers!r}"
        )


def _encoder_config(encoder: dict[str, Any] | PreTrainedConfig | None) -> PreTrainedConfig:
    if encoder is None:  # Hugging Face builds every configuration once without arguments
        return AutoConfig.for_model("bert")
    if isinstance(encoder, dict):
        options = dict(encoder)
        if "model_type" not in options:
            raise ValueError("encoder must name its model_type, as the configurations of transformers do")
        encoder = AutoConfig.for_model(options.pop("model_type"), **options)
    if getattr(encoder, "is_encoder_decoder", False):
        raise ValueError(f"encoder must be an encoder alone; {encoder.model_type!r} is an encoder with a decoder")
    if not hasattr(encoder, "hidden_size"):
        raise ValueError(f"encoder must have a hidden_size; {encoder.model_type!r} has none")
    return encoder
