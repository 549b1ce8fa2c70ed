"""Read a classifier from its folder without transformers, where that gives the same answers."""

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from spinformer._base.devices import usable_device
from spinformer._base.files import json_object, regular
from spinformer._base.rng import seeded
from spinformer.models.plain.network import PlainBert, PlainClassifier, PlainNeuroGame
from spinformer.models.plain.options import PlainConfig
from spinformer.models.rounding import read_weights
from spinformer.models.shipped import named_model
from spinformer.models.size_limits import built_for, check_shape, tensor_shapes

if TYPE_CHECKING:
    from spinformer.models.plain.tokenizer import PieceTokenizer

# Files beside which transformers would read something else.
OTHERS = ("adapter_config.json", "added_tokens.json", "special_tokens_map.json", "vocab.txt")

STORED = (torch.float16, torch.bfloat16, torch.float32)


def read_classifier(
    path_or_hub_id: str | Path, device: torch.device | str | None = None
) -> "tuple[PlainClassifier, PieceTokenizer] | None":
    """A classifier, in evaluation mode, and its tokenizer; None where it is left to `load_classifier`.

    That is so of names on the hub, of every architecture but BERT and ours on BERT, of options and files that are not
    known here, and of damaged ones: `load_classifier` says what is wrong with them.
    """
    folder, device = Path(named_model(str(path_or_hub_id))), usable_device(device)
    if not folder.is_dir() or any((folder / name).exists() for name in OTHERS):
        return None
    try:
        from spinformer.models.plain.tokenizer import PieceTokenizer  # not above: it needs an extra

        config = PlainConfig.from_options(json_object(folder / "config.json"))
        names = ("tokenizer.json", "tokenizer_config.json")
        tokenizer = PieceTokenizer(*(json_object(folder / name) for name in names))
        if len(tokenizer) > config.vocab_size or tokenizer.pad_token_id != config.pad_token_id:
            return None
        model = _read_model(folder, config)
    except Exception:  # whatever it is, it is not what can be read here
        return None
    model.name_or_path = str(folder)
    return model.to(device).eval(), tokenizer


def _read_model(folder: Path, config: PlainConfig) -> PlainClassifier:
    """The model with all of its weights, in float32; a ValueError where they are not those of the configuration."""
    path = regular(folder / "model.safetensors")
    kind, below = (PlainNeuroGame, "model.encoder") if config.head else (PlainBert, "bert")
    shapes, width = tensor_shapes(path), config.hidden_size
    for name, rows in {  # what could be larger than memory, before it is made
        "embeddings.word_embeddings": config.vocab_size,
        "embeddings.position_embeddings": config.max_position_embeddings,
        "embeddings.token_type_embeddings": config.type_vocab_size,
        "encoder.layer.0.intermediate.dense": config.intermediate_size,
    }.items():
        check_shape(str(folder), shapes, f"{below}.{name}.weight", (rows, width))
    weights = read_weights(path)
    if not all(value.dtype in STORED for value in weights.values()):
        raise ValueError(f"{path} has numbers that are not floating-point ones")
    with seeded(0):  # the weights that are replaced at once
        return built_for(path, weights, lambda: kind(config), f"{folder}: the weights are not those of its config.json")
