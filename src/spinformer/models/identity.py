"""Whether a model is the one that a game head was made for.

Its weights have a digest, which tells at once. Where the digests differ, the model may still be the same, in another
precision or in a wrapper: then its states for a few tokens, which the game head reads, are compared with those that
were kept.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from spinformer._base.files import regular
from spinformer.models.hidden_states import frozen_states, vocabulary_size

FILE = "probe.safetensors"
# Rows and tokens of the probe; the largest difference of two states, relative to their size. Rounding to bfloat16 stays
# below it; weights that a tenth of their spread was added to do not.
SHAPE, TOLERANCE = (4, 12), 0.05


@torch.no_grad()
def weights_digest(model: nn.Module) -> str:
    """sha256 of a model's weights as float16, so that it is the same on every device; of quantised ones as stored."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        for part in _stored(value):
            digest.update(part)
    return digest.hexdigest()


def _stored(value: Any) -> Iterator[Any]:
    """The numbers of an entry of a state dict: of a tensor, or of the tensors that a quantised one is made of."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from _stored(part)
    elif not isinstance(value, Tensor):
        yield repr(value).encode()
    elif hasattr(value, "__tensor_flatten__"):  # a tensor made of others, as torchao's are
        for name in value.__tensor_flatten__()[0]:
            yield from _stored(getattr(value, name))
    else:
        plain = value.detach().int_repr() if value.is_quantized else value.detach()
        stored = plain.to("cpu", torch.float16) if plain.is_floating_point() else plain.cpu()
        yield stored.reshape(-1).numpy()


@torch.no_grad()
def probe_states(model: Any) -> dict[str, Tensor]:
    """States of every layer for a few tokens from all over the vocabulary, (layers, rows, d), means over the tokens."""
    device = next(model.parameters()).device
    size = vocabulary_size(model)
    if size is None:
        raise ValueError(f"{type(model).__name__} does not say how many tokens it knows")
    ids = torch.linspace(0, size - 1, SHAPE[0] * SHAPE[1]).long().view(SHAPE)
    end = getattr(model.config, "eos_token_id", None)
    if isinstance(end, int) and 0 <= end < size:  # some models want one at the end of every text, and nowhere else
        ids = torch.where(ids == end, (ids + 1) % size, ids)
        ids[:, -1] = end
    inputs = {"input_ids": ids.to(device), "attention_mask": torch.ones(SHAPE, dtype=torch.long, device=device)}
    logits, states = frozen_states(model, inputs)
    means = torch.stack([state.float().mean(1).cpu() for state in states])
    return {"states": means, "logits": logits.float().cpu()}


def kept_states(model: Any) -> dict[str, Tensor] | None:
    """`probe_states`, or None of a model that does not take such inputs."""
    try:
        return probe_states(model)
    except (ValueError, RuntimeError, IndexError, TypeError):
        return None


def save_probe(folder: Path, states: dict[str, Tensor]) -> None:
    """Beside the weights of a game head."""
    save_file({name: value.contiguous() for name, value in states.items()}, folder / FILE)


def load_probe(folder: Path) -> dict[str, Tensor] | None:
    """What `save_probe` wrote; None where there is none that can be read."""
    if not (folder / FILE).is_file():
        return None
    try:
        return dict(load_file(regular(folder / FILE)))
    except (SafetensorError, OSError):
        return None


def same_model(model: Any, digest: str, folder: Path) -> bool:
    """Whether a model has the weights of this digest, or behaves as the probe in the folder says."""
    if weights_digest(model) == digest:
        return True
    kept = load_probe(folder)
    if kept is None:
        return False
    found = kept_states(model)
    if found is None or any(name not in kept or kept[name].shape != value.shape for name, value in found.items()):
        return False
    return all(_close(found[name], kept[name].float()) for name in found)


def _close(first: Tensor, second: Tensor) -> bool:
    """Rows that differ by at most TOLERANCE of their size."""
    apart, size = (first - second).norm(dim=-1), second.norm(dim=-1)
    return bool((apart <= TOLERANCE * size + 1e-6).all())
