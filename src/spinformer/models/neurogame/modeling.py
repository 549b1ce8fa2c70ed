"""The NeuroGame Transformer as Hugging Face models: any encoder, a pooling head on its last layer, a classifier."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedModel,
)

from spinformer._base import checks
from spinformer.models.game_head import GameHead
from spinformer.models.hidden_states import max_tokens
from spinformer.models.loading import load_encoder, load_own, one_line_errors
from spinformer.models.neurogame.configuration import NeuroGameConfig
from spinformer.models.neurogame.encoder import pooler_option, set_dropout
from spinformer.models.neurogame.output import NeuroGameClassifierOutput, NeuroGameModelOutput
from spinformer.models.pooling import POOLING_HEADS, Pooled, log_mean_probability, loss_rows
from spinformer.models.pretrained import model_of, pretrained_config
from spinformer.models.size_limits import bounded_by_weights
from spinformer.models.token_inputs import check_attention, check_ids, check_labels, is_any_of


class NeuroGamePreTrainedModel(PreTrainedModel):
    """Loading that refuses what does not fit, instead of filling it with random numbers."""

    config_class = NeuroGameConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_attention_backend = True
    _no_split_modules = ["NeuroGamePooling"]  # noqa: RUF012
    ignored_weights: tuple[str, ...] = ()  # how the names of weights begin that belong to a larger model

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *model_args: Any, **kwargs: Any) -> Any:
        """As in Hugging Face; a damaged file, another architecture or missing weights are a clear ValueError."""
        path, load = pretrained_model_name_or_path, super().from_pretrained
        return load_own(load, NeuroGameConfig.model_type, path, *model_args, ignored=cls.ignored_weights, **kwargs)


class NeuroGameModel(NeuroGamePreTrainedModel):
    """Encoder and pooling head: a text's vector z, for head "neurogame" that of NGT Eqs. 26, 27."""

    ignored_weights = ("classifier.", "game.")

    def __init__(self, config: NeuroGameConfig) -> None:
        checks.instance("config", config, NeuroGameConfig)
        super().__init__(config)
        self.encoder = model_of(config.encoder, dtype=torch.get_default_dtype(), **pooler_option(config.encoder))
        self.max_tokens = max_tokens(self.encoder)
        self.pooling = config.pooling_head.pooling(config)
        self.post_init()

    def get_input_embeddings(self) -> torch.nn.Module:
        """The encoder's."""
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: torch.nn.Module) -> None:
        """The encoder's."""
        self.encoder.set_input_embeddings(value)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        special_tokens_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_game: bool = True,
        output_diagnostics: bool = False,
        return_dict: bool | None = None,
        **inputs: Any,
    ) -> NeuroGameModelOutput | tuple[Any, ...]:
        """input_ids or inputs_embeds as the encoder takes them; `inputs`: what else it takes (token_type_ids ...).

        output_game, output_diagnostics: whether the output carries the game, and its diagnostics alone.
        """
        given = input_ids if input_ids is not None else inputs_embeds
        if given is None:
            raise ValueError("expected input_ids or inputs_embeds; got neither")
        if input_ids is not None:
            check_ids(input_ids, self.get_input_embeddings())
        if self.max_tokens is not None and given.shape[1] > self.max_tokens:
            raise ValueError(
                f"the encoder takes texts of at most {self.max_tokens} tokens; got {given.shape[1]}: have the "
                f"tokenizer cut them (truncation=True, max_length={self.max_tokens})"
            )
        if attention_mask is None:
            attention_mask = given.new_ones(given.shape[:2], dtype=torch.long)
        check_attention(attention_mask, given.shape[:2])
        encoded = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **inputs
        )
        hidden = encoded.last_hidden_state
        if special_tokens_mask is None and input_ids is not None and self.config.special_ids:
            special_tokens_mask = is_any_of(input_ids, self.config.special_ids)
        options = {"output_game": output_game} if self.config.pooling_head.plays else {}
        pooled = Pooled(*self.pooling(hidden, attention_mask.bool(), special_tokens_mask, **options))
        vector: Any = pooled.vector
        output = NeuroGameModelOutput(
            last_hidden_state=hidden,
            pooler_output=vector,
            hidden_states=getattr(encoded, "hidden_states", None),
            game=pooled.game if output_game else None,
            diagnostics=pooled.diagnostics if output_diagnostics else None,
        )
        return output.to_tuple() if return_dict is False else output


class NeuroGameForSequenceClassification(NeuroGamePreTrainedModel):
    """P(class | text) = softmax(o),   o = FFN(z)                          (NGT Eqs. 28 to 30)

    z: the vector of the pooling head. Where the pooling head has a game head beside it, `game`, a `GameHead` trained
    with the rest, predicts what the model would answer of any part of the text. Where it has several parts, each has
    its own z and FFN, the answer is their mean probability, and the loss is the mean of theirs.
    """

    def __init__(self, config: NeuroGameConfig) -> None:
        checks.instance("config", config, NeuroGameConfig)
        super().__init__(config)
        self.num_labels = config.classes
        self.model = NeuroGameModel(config)
        self.classifier = config.pooling_head.classifier(config)
        self.game = GameHead(config.game_head_config()) if config.pooling_head.has_game_head else None
        self.post_init()

    def players(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, n), true for tokens of words: neither padding nor special."""
        return attention_mask.bool() & ~is_any_of(input_ids, self.config.special_ids)

    @property
    def plays(self) -> bool:
        """Whether `output_game=True` returns the game of a NeuroGame layer."""
        return self.config.pooling_head.plays

    @classmethod
    def from_encoder(
        cls,
        path: str | Path,
        num_labels: int | None = None,
        *,
        labels: tuple[str, ...] | None = None,
        head: str = "neurogame",
        residual: bool = False,
        classifier_layers: int = 1,
        dropout: float = 0.1,
        encoder_dropout: float | None = None,
        special_ids: tuple[int, ...] = (),
        grounding: dict[str, Any] | None = None,
        **game: Any,
    ) -> "NeuroGameForSequenceClassification":
        """A pretrained encoder (folder or hub id) under a fresh pooling head; `game`: options of the NeuroGame layer.

        Of a classifier of this class the encoder is taken, with its dropout, and the pooling head is left behind.
        labels: the class names, in order; without them there are `num_labels` classes, or 3. encoder_dropout: replaces
        every dropout probability of the encoder. The other options are as in `NeuroGameConfig`.
        """
        checks.instance("path", path, str, Path)
        path = str(path)
        if game and not POOLING_HEADS[head].uses_layer:
            raise TypeError(f"pooling head {head!r} has no NeuroGame layer to take option(s) {', '.join(game)}")
        with one_line_errors(path, Exception):
            source: Any = pretrained_config(path)
        encoder_config = source.encoder if isinstance(source, NeuroGameConfig) else source
        if encoder_dropout is not None:
            set_dropout(encoder_config, encoder_dropout)
        names = labels or tuple(f"LABEL_{index}" for index in range(3 if num_labels is None else num_labels))
        if len(set(names)) < len(names) or num_labels not in (None, len(names)):
            raise ValueError(f"labels must name num_labels = {num_labels} classes, each once; got {names}")
        config = NeuroGameConfig(
            encoder=encoder_config,
            head=head,
            game=game,
            grounding=grounding,
            residual=residual,
            classifier_layers=classifier_layers,
            dropout=dropout,
            special_ids=special_ids,
            id2label=dict(enumerate(names)),
            label2id={name: index for index, name in enumerate(names)},
        )
        with one_line_errors(path), bounded_by_weights(path):
            model = cls(config)
        if isinstance(source, NeuroGameConfig):
            trained = cls.from_pretrained(path, dtype=torch.float32)
            model.model.encoder.load_state_dict(trained.model.encoder.state_dict())
        else:
            model.model.encoder = load_encoder(path, encoder_config, **pooler_option(encoder_config))
            # The name alone: config.json shall not carry a path of this machine.
            encoder_config._name_or_path = Path(path).name if Path(path).is_dir() else path
        return model

    def part(self, head: str) -> "NeuroGameForSequenceClassification":
        """A separate classifier with one part of the pooling head, by its name, as it was trained, and the encoder."""
        names = self.config.pooling_head.parts
        if not names:
            raise ValueError(f"only a joint classifier has parts; this one has head {self.config.head!r}")
        checks.choice("head", head, names)
        config: Any = copy.deepcopy(self.config)
        config.head = head
        if not config.pooling_head.uses_layer:
            config.game = {}
        index = names.index(head)
        model = type(self)(config).train(self.training)
        model.to(device=self.device, dtype=self.dtype)
        joint: Any = self
        for copied, trained in (
            (model.model.encoder, joint.model.encoder),
            (model.model.pooling, joint.model.pooling.each[index]),
            (model.classifier, joint.classifier.each[index]),
        ):
            copied.load_state_dict(trained.state_dict())
        return model

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        special_tokens_mask: Tensor | None = None,
        output_game: bool = False,
        output_diagnostics: bool = False,
        mix: tuple[Tensor, Tensor] | None = None,
        return_dict: bool | None = None,
        **inputs: Any,
    ) -> NeuroGameClassifierOutput | tuple[Any, ...]:
        """labels: (B,) class positions, for the loss; output_game, output_diagnostics: whether the output carries the
        game, and its diagnostics alone, which on a GPU is much quicker.

        mix = (order, weight): mixup, the classifier sees weight z + (1 - weight) z[order] (Zhang et al., 2018, on z).
        """
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        with_states = bool(inputs.get("output_hidden_states"))
        game_head = self.game if output_game else None
        if game_head is not None:
            inputs["output_hidden_states"] = True
        base = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            special_tokens_mask=special_tokens_mask,
            inputs_embeds=inputs_embeds,
            output_game=output_game,
            output_diagnostics=output_diagnostics,
            **inputs,
        )
        vector = base.pooler_output
        if mix is not None:
            order, weight = mix
            vector = torch.lerp(vector[order], vector, weight.to(vector.dtype))
        logits, head_logits = self.classifier(vector), None
        if logits.dim() == 3:  # (B, H, C), of the parts of the pooling head
            logits, head_logits = log_mean_probability(logits), logits
        loss: Any = None
        if labels is not None:
            check_labels(labels, len(logits), logits.shape[-1])
            loss = functional.cross_entropy(*loss_rows(logits, head_logits, labels))
        output = NeuroGameClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=base.hidden_states if with_states else None,
            game=base.game,
            diagnostics=base.diagnostics,
            features=None if game_head is None else game_head.map([state.detach() for state in base.hidden_states]),
            head_logits=head_logits,
        )
        return output.to_tuple() if return_dict is False else output


AutoConfig.register("neurogame", NeuroGameConfig)
AutoModel.register(NeuroGameConfig, NeuroGameModel)
AutoModelForSequenceClassification.register(NeuroGameConfig, NeuroGameForSequenceClassification)
