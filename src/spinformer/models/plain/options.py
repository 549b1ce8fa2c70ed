"""Which configurations a plain classifier is built from: those of which every option is known, and has a usual value.

Any other is a ValueError, or a TypeError where an option is missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from spinformer._base import checks
from spinformer.models.outputs import PROBLEM_TYPES
from spinformer.models.pooling import POOLING_HEADS
from spinformer.models.pretrained import MAX_COUNT

Rule = Callable[[Any], bool]


@dataclass
class PlainConfig:
    """The options of a BERT encoder and of the classifier on it, by their names in config.json.

    id2label: the names of the classes; head: a pooling head, "" for BERT's own pooler; game, residual,
    classifier_layers, dropout, special_ids: as in `NeuroGameConfig`.
    """

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    layer_norm_eps: float
    pad_token_id: int
    id2label: dict[int, str]
    game: dict[str, Any]
    problem_type: str | None = None
    head: str = ""
    residual: bool = False
    classifier_layers: int = 0
    dropout: float = 0.0
    special_ids: Sequence[int] = ()

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(f"heads of equal width; got {self.num_attention_heads} for {self.hidden_size}")

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return len(self.id2label)

    @property
    def num_labels(self) -> int:
        """C, as transformers calls it."""
        return self.classes

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "PlainConfig":
        """From the content of config.json."""
        if "dtype" not in options:
            raise ValueError("expected the precision that the model computes in")
        if options.get("model_type") == "bert":
            check_options(options, ENCODER | CLASSIFIER)
            return cls(**_fields(options) | _classes(options), game={})
        check_options(options, NEUROGAME | CLASSIFIER)
        encoder = options["encoder"]
        check_options(encoder, ENCODER | {"id2label": any_value, "problem_type": usual(None)})
        padding = {"pad_token_id": encoder["pad_token_id"]}
        if options.get("pad_token_id") not in (None, encoder["pad_token_id"]):
            raise ValueError("expected one token for padding")
        return cls(**_fields(encoder) | _fields(options) | _classes(options) | padding)


def usual(*values: Any) -> Rule:
    """One of these values, and of its type."""
    return lambda value: any(type(value) is type(each) and value == each for each in values)


def any_value(value: Any) -> bool:
    """Whatever it is: no answer depends on it."""
    return True


def check_options(options: Mapping[str, Any], rules: Mapping[str, Rule]) -> None:
    """A ValueError where an option has no rule, or breaks it."""
    checks.instance("options", options, Mapping)
    for name, value in options.items():
        if name not in rules or not rules[name](value):
            raise ValueError(f"{name}={value!r:.60} is not known here")


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: options[field.name] for field in fields(PlainConfig) if field.name in options}


def _classes(options: Mapping[str, Any]) -> dict[str, Any]:
    names = options["id2label"]
    return {"id2label": {number: names[str(number)] for number in range(len(names))}}


def _size(value: Any) -> bool:
    return type(value) is int and 0 < value <= MAX_COUNT


def _token(value: Any) -> bool:
    return type(value) is int and value >= 0


def _share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1


def _names(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(name, str) for name in value.values())


def _head(value: Any) -> bool:
    """Whether it is a pooling head of one part, without a game head that is trained with it."""
    return value in POOLING_HEADS and not POOLING_HEADS[value].parts and not POOLING_HEADS[value].has_game_head


# What no answer depends on.
ABOUT = dict.fromkeys(("_name_or_path", "architectures", "label2id", "transformers_version", "use_cache"), any_value)
COMMON = ABOUT | {
    "dtype": usual("float32"),
    "return_dict": usual(True),
    **dict.fromkeys(("is_encoder_decoder", "output_attentions", "output_hidden_states"), usual(False)),
}
ENCODER: dict[str, Rule] = COMMON | {
    "model_type": usual("bert"),
    "pad_token_id": _token,
    "hidden_act": usual("gelu"),
    "position_embedding_type": usual("absolute"),
    "layer_norm_eps": _share,
    "attention_probs_dropout_prob": _share,
    "hidden_dropout_prob": _share,
    "classifier_dropout": lambda value: value is None or _share(value),
    "chunk_size_feed_forward": usual(0),
    "bos_token_id": usual(None),
    "eos_token_id": usual(None),
    **dict.fromkeys(("add_cross_attention", "gradient_checkpointing", "is_decoder"), usual(False)),
    **dict.fromkeys(("initializer_range", "tie_word_embeddings"), any_value),
    **dict.fromkeys(("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads"), _size),
    **dict.fromkeys(("intermediate_size", "max_position_embeddings", "type_vocab_size"), _size),
}
CLASSIFIER: dict[str, Rule] = {
    "id2label": _names,
    "problem_type": usual(None, *PROBLEM_TYPES),
}
NEUROGAME: dict[str, Rule] = COMMON | {
    "model_type": usual("neurogame"),
    "encoder": lambda value: isinstance(value, dict),
    "head": _head,
    "pad_token_id": lambda value: value is None or _token(value),
    "game": lambda value: isinstance(value, dict),
    "grounding": lambda value: isinstance(value, dict),  # of a game head
    "residual": usual(False, True),
    "classifier_layers": lambda value: value == 0 or _size(value),
    "dropout": _share,
    "special_ids": lambda value: isinstance(value, list) and all(map(_token, value)),
}
