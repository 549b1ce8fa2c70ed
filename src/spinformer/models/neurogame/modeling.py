"""The NeuroGame Transformer as Hugging Face models: any encoder, the game on its last layer, a classifier."""

import copy
from collections.abc import Sequence
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

from spinformer import checks
from spinformer.models import checkpoints
from spinformer.models.grounding import GameHead
from spinformer.models.hidden import longest
from spinformer.models.neurogame.configuration import NeuroGameConfig
from spinformer.models.neurogame.encoder import among, no_pooler, pretrained, set_dropout
from spinformer.models.neurogame.heads import JOINT, Layers, NeuroGamePooling, by_head, classifier, mean_answer, pooling
from spinformer.models.neurogame.output import NeuroGameClassifierOutput, NeuroGameModelOutput


class NeuroGamePreTrainedModel(PreTrainedModel):
    """Loading that refuses what does not fit, instead of filling it with random numbers."""

    config_class = NeuroGameConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_attention_backend = True
    _no_split_modules = ["NeuroGamePooling"]  # noqa: RUF012
    beside: tuple[str, ...] = ()  # how weights begin that a checkpoint may have for the rest of a larger model

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: Any, *model_args: Any, **kwargs: Any) -> Any:
        """As in Hugging Face; a damaged file, another architecture or missing weights are a clear ValueError."""
        path = pretrained_model_name_or_path
        load = super().from_pretrained
        return checkpoints.load(load, cls.config_class, path, *model_args, beside=cls.beside, **kwargs)


class NeuroGameModel(NeuroGamePreTrainedModel):
    """Encoder and pooling: a text's vector z (Eqs. 26-27)."""

    beside = ("classifier.", "game.")

    def __init__(self, config: NeuroGameConfig) -> None:
        super().__init__(config)
        self.encoder = AutoModel.from_config(
            config.encoder, dtype=torch.get_default_dtype(), **no_pooler(config.encoder)
        )
        self.longest = longest(self.encoder)
        self.layers = Layers(config.hidden_size, config.layers) if config.layers else None
        self.pooling = pooling(
            config.head,
            config.hidden_size,
            residual=config.residual,
            game=config.game,
        )
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
        return_dict: bool | None = None,
        **inputs: Any,
    ) -> NeuroGameModelOutput | tuple[Any, ...]:
        """input_ids or inputs_embeds as the encoder takes them; `inputs`: what else it takes (token_type_ids ...)."""
        given = input_ids if input_ids is not None else inputs_embeds
        if given is None:
            raise ValueError("expected input_ids or inputs_embeds; got neither")
        if self.longest is not None and given.shape[1] > self.longest:
            raise ValueError(
                f"the encoder takes texts of at most {self.longest} tokens; got {given.shape[1]}: have the tokenizer "
                f"cut them (truncation=True, max_length={self.longest})"
            )
        if attention_mask is None:
            attention_mask = given.new_ones(given.shape[:2], dtype=torch.long)
        if self.layers is not None:
            inputs["output_hidden_states"] = True
        encoded = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **inputs
        )
        hidden = encoded.last_hidden_state
        if self.layers is not None:
            hidden = self.layers(hidden, encoded.hidden_states)
        if special_tokens_mask is None and input_ids is not None and self.config.special_ids:
            special_tokens_mask = among(input_ids, self.config.special_ids)
        pooled, game = self.pooling(hidden, attention_mask.bool(), special_tokens_mask)
        output = NeuroGameModelOutput(
            last_hidden_state=hidden,
            pooler_output=pooled,
            hidden_states=getattr(encoded, "hidden_states", None),
            game=game,
        )
        return output.to_tuple() if return_dict is False else output


class NeuroGameForSequenceClassification(NeuroGamePreTrainedModel):
    """P(class | text) = softmax(o),   o = FFN(z)                          (Eqs. 28-30)

    With head "grounded" z is the first token's vector, and `game`, a `GameHead` trained with the rest, says what the
    model would answer of any part of the text. With head "joint" every head has its own z and FFN, and the answer is
    the mean of theirs; the loss is the mean of theirs too.
    """

    def __init__(self, config: NeuroGameConfig) -> None:
        super().__init__(config)
        self.num_labels = int(config.num_labels or 0)
        self.model = NeuroGameModel(config)
        self.classifier = classifier(
            config.head,
            config.hidden_size,
            self.num_labels,
            layers=config.classifier_layers,
            dropout=config.dropout,
        )
        self.game = GameHead(config.grounding_config()) if config.head == "grounded" else None
        self.post_init()

    def players(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(B, n), true for tokens of words: neither padding nor special."""
        return attention_mask.bool() & ~among(input_ids, self.config.special_ids)

    @property
    def plays(self) -> bool:
        """Whether the head is a game (`output_game` gives it) or a baseline."""
        return isinstance(self.model.pooling, NeuroGamePooling)

    @classmethod
    def from_encoder(
        cls,
        path: str,
        num_labels: int | None = None,
        *,
        labels: tuple[str, ...] | None = None,
        head: str = "neurogame",
        residual: bool = False,
        classifier_layers: int = 1,
        dropout: float = 0.1,
        encoder_dropout: float | None = None,
        special_ids: tuple[int, ...] = (),
        layers: Sequence[int] = (),
        grounding: dict[str, Any] | None = None,
        **game: Any,
    ) -> "NeuroGameForSequenceClassification":
        """A pretrained encoder (folder or hub id) under a fresh head; `game`: options of the NeuroGame layer.

        Of a classifier of this class the encoder is taken, with its dropout, and the head is left behind.
        labels: the class names, in order; without them there are `num_labels` classes, or 3. encoder_dropout: replaces
        every dropout probability of the encoder.
        """
        with checkpoints.reading(path):
            found = AutoConfig.from_pretrained(path)
        encoder_config = found.encoder if isinstance(found, NeuroGameConfig) else found
        if encoder_dropout is not None:
            set_dropout(encoder_config, encoder_dropout)
        names = labels or tuple(f"LABEL_{place}" for place in range(3 if num_labels is None else num_labels))
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
            layers=layers,
            id2label=dict(enumerate(names)),
            label2id={name: place for place, name in enumerate(names)},
        )
        model = cls(config)
        if isinstance(found, NeuroGameConfig):
            trained = cls.from_pretrained(path, dtype=torch.float32)
            model.model.encoder.load_state_dict(trained.model.encoder.state_dict())
        else:
            model.model.encoder = pretrained(path, encoder_config)
        if found is encoder_config:
            encoder_config._name_or_path = Path(path).name if Path(path).is_dir() else path  # no folder of this machine
        return model

    def part(self, head: str) -> "NeuroGameForSequenceClassification":
        """A classifier of its own with one head of a joint one, by name, as it was trained, and the encoder."""
        if self.config.head != "joint":
            raise ValueError(f"only a joint classifier has parts; this one has head {self.config.head!r}")
        checks.choice("head", head, JOINT)
        config: Any = copy.deepcopy(self.config)
        config.head = head
        if head != "neurogame":
            config.game = {}
        whole: Any = self
        place = JOINT.index(head)
        model = type(self)(config).train(self.training)
        model.to(device=self.device, dtype=self.dtype)
        pairs = (
            (model.model.encoder, whole.model.encoder),
            (model.model.layers, whole.model.layers),
            (model.model.pooling, whole.model.pooling.each[place]),
            (model.classifier, whole.classifier.each[place]),
        )
        for own, trained in pairs:
            if own is not None:
                own.load_state_dict(trained.state_dict())
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
        mix: tuple[Tensor, Tensor] | None = None,
        return_dict: bool | None = None,
        **inputs: Any,
    ) -> NeuroGameClassifierOutput | tuple[Any, ...]:
        """labels: (B,) class positions, for the loss; output_game: whether the output carries the game.

        mix = (order, weight): mixup, the classifier sees weight z + (1 - weight) z[order] (Zhang et al., 2018, on z).
        """
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        asked = bool(inputs.get("output_hidden_states"))
        told = self.game if output_game else None
        if told is not None:
            inputs["output_hidden_states"] = True
        base = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            special_tokens_mask=special_tokens_mask,
            inputs_embeds=inputs_embeds,
            **inputs,
        )
        vector = base.pooler_output
        if mix is not None:
            order, weight = mix
            vector = torch.lerp(vector[order], vector, weight.to(vector.dtype))
        logits, each = self.classifier(vector), None
        if logits.dim() == 3:
            logits, each = mean_answer(logits), logits
        loss: Any = None if labels is None else functional.cross_entropy(*by_head(logits, each, labels))
        output = NeuroGameClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=base.hidden_states if asked else None,
            game=base.game if output_game else None,
            features=None if told is None else told.map([layer.detach() for layer in base.hidden_states]),
            each=each,
        )
        return output.to_tuple() if return_dict is False else output


AutoConfig.register("neurogame", NeuroGameConfig)
AutoModel.register(NeuroGameConfig, NeuroGameModel)
AutoModelForSequenceClassification.register(NeuroGameConfig, NeuroGameForSequenceClassification)
