"""A smaller copy of a classifier, to be trained further: some of its layers, and the word pieces that texts need."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.files import atomic_files
from spinformer.models.loading import load_classifier, load_tokenizer

CONTINUED = "##"  # begins a word piece that continues a word
CHUNK = 4096  # texts tokenised at a time
LAYER = re.compile(r"(.*\.layer\.)(\d+)(\..*)")
WORDS, POSITIONS = "word_embeddings.weight", "position_embeddings.weight"


def smaller_copy(
    source: str | Path, output: Path, texts: Sequence[str], *, layers: Sequence[int], vocabulary: int, positions: int
) -> None:
    """Write to `output` the classifier of `source`, of our own class on a BERT encoder, with less of everything.

    layers: which of the encoder's layers are kept, in order; vocabulary: the number of word pieces, the most frequent
    in `texts` and all that `kept_pieces` says; positions: tokens that it can read.
    """
    tokenizer: Any = load_tokenizer(source)
    pieces = kept_pieces(tokenizer, texts, vocabulary)
    known = tokenizer.get_vocab()
    rows = torch.tensor([known[piece] for piece in pieces])
    model: Any
    model, _ = load_classifier(source, device="cpu")
    config = deepcopy(model.config)
    count = config.encoder.num_hidden_layers
    if not layers or list(layers) != sorted(set(layers)) or not 0 <= min(layers) <= max(layers) < count:
        raise ValueError(f"layers must be rising numbers from 0 to {count - 1}; got {list(layers)}")
    checks.at_least("positions", positions, 1)
    config.encoder.num_hidden_layers = len(layers)
    config.encoder.vocab_size = len(pieces)
    config.encoder.max_position_embeddings = min(positions, config.encoder.max_position_embeddings)
    ids = {piece: place for place, piece in enumerate(pieces)}
    config.special_ids = sorted(ids[token] for token in tokenizer.all_special_tokens if token in ids)
    smaller = type(model)(config)
    smaller.load_state_dict(_kept_weights(model.state_dict(), rows, layers, config.encoder.max_position_embeddings))
    with atomic_files(output) as written:
        smaller.save_pretrained(written)
        tokenizer.save_pretrained(written)
        _cut_tokenizer(written, ids, config.encoder.max_position_embeddings)


def kept_pieces(tokenizer: Any, texts: Sequence[str], size: int) -> list[str]:
    """`size` word pieces of a tokenizer of this kind, those of special tokens first.

    Kept are special tokens, every single character that is ASCII or occurs in the texts, at the beginning of a word and
    inside it, so that every such text can be read, and then the pieces that are most frequent in the texts.
    """
    known: dict[str, int] = tokenizer.get_vocab()
    counts = _count(tokenizer, texts)
    special = list(dict.fromkeys(token for token in tokenizer.all_special_tokens if token in known))
    special.sort(key=lambda token: known[token])
    seen = {character for piece in counts for character in piece.removeprefix(CONTINUED)}
    single = [piece for piece in known if len(piece.removeprefix(CONTINUED)) == 1]
    needed = [piece for piece in single if piece[-1].isascii() or piece[-1] in seen]
    kept = dict.fromkeys([*special, *needed])
    if not len(kept) <= size <= len(known):
        raise ValueError(f"vocabulary must be from {len(kept)}, the characters, to {len(known)}; got {size}")
    frequent = sorted(counts, key=lambda piece: (-counts[piece], piece))
    kept |= dict.fromkeys([*frequent, *sorted(known, key=lambda piece: known[piece])])
    chosen = list(kept)[:size]
    return [*special, *sorted(set(chosen) - set(special), key=lambda piece: known[piece])]


def _count(tokenizer: Any, texts: Sequence[str]) -> Counter[str]:
    """How often each word piece occurs in the texts."""
    ids: Counter[int] = Counter()
    for start in range(0, len(texts), CHUNK):
        part = list(texts[start : start + CHUNK])
        for row in tokenizer(part, add_special_tokens=False, truncation=True)["input_ids"]:
            ids.update(row)
    names = tokenizer.convert_ids_to_tokens(list(ids))
    return Counter(dict(zip(names, ids.values(), strict=True)))


def _kept_weights(
    weights: Mapping[str, Tensor], rows: Tensor, layers: Sequence[int], positions: int
) -> dict[str, Tensor]:
    """The weights of the smaller classifier by their names there."""
    places = {layer: place for place, layer in enumerate(layers)}
    kept = {}
    for name, value in weights.items():
        layer = LAYER.fullmatch(name)
        if layer is not None:
            if int(layer[2]) in places:
                kept[f"{layer[1]}{places[int(layer[2])]}{layer[3]}"] = value
        elif name.endswith(WORDS):
            kept[name] = value[rows]
        else:
            kept[name] = value[:positions] if name.endswith(POSITIONS) else value
    return kept


def _cut_tokenizer(folder: Path, ids: Mapping[str, int], positions: int) -> None:
    """Leave only these word pieces, with these numbers, in the tokenizer that was saved in the folder."""
    path, options_path = folder / "tokenizer.json", folder / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    if content["model"]["type"] != "WordPiece":
        raise ValueError(f"expected a tokenizer of word pieces; got {content['model']['type']}")
    content["model"]["vocab"] = dict(ids)
    content["added_tokens"] = [
        {**token, "id": ids[token["content"]]} for token in content["added_tokens"] if token["content"] in ids
    ]
    for token in (content["post_processor"] or {}).get("special_tokens", {}).values():
        token["ids"] = [ids[piece] for piece in token["tokens"]]
    content["truncation"] = content["padding"] = None
    path.write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    options = json.loads(options_path.read_text(encoding="utf-8"))
    options["model_max_length"] = positions
    for name in ("max_length", "stride", "truncation_strategy", "truncation_side", "pad_to_multiple_of", "is_local"):
        options.pop(name, None)
    options.pop("local_files_only", None)
    options_path.write_text(json.dumps(options, indent=2) + "\n", encoding="utf-8")
