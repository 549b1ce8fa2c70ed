"""A trained classifier and its tokenizer, from a folder or the Hugging Face hub."""

import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from spinformer.extras import require
from spinformer.models.checkpoints import named_weights, quiet

_HUB_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def load_classifier(source: str, *, device: torch.device | str = "cpu") -> tuple[Any, Any]:
    """The model, in evaluation mode on `device`, and its tokenizer.

    source: a folder that `save_pretrained` wrote, or a name on the hub. Ours and every other architecture that
    transformers can load. Weights that are missing, of another shape or damaged are an error: nothing is made up.
    """
    transformers = _transformers()
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device must be one of this machine's, as cpu or cuda; got {device!r} ({error})") from None
    with _reading(source):
        model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            source, output_loading_info=True, ignore_mismatched_sizes=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    _complete(source, model, tokenizer, report)
    return model.to(device).eval(), tokenizer


def load_config(source: str) -> Any:
    """The configuration alone, which has the class names."""
    transformers = _transformers()
    with _reading(source):
        return transformers.AutoConfig.from_pretrained(source)


def _transformers() -> Any:
    transformers = require("transformers", extra="nli")
    for ours in ("spinformer.models.neurogame", "spinformer.models.words"):
        importlib.import_module(ours)  # makes our classes known to transformers
    return transformers


@contextmanager
def _reading(source: str) -> Iterator[None]:
    """Quietly, and whatever goes wrong is one line that names the source."""
    folder = Path(source)
    here = folder.is_dir()
    if not here and not _hub_name(source):
        raise FileNotFoundError(
            f"expected a folder with a saved model at {source}; there is {'a file' if folder.exists() else 'nothing'}"
        )
    with quiet():
        try:
            yield
        except Exception as error:  # whatever a damaged file makes the readers raise
            where = "the folder" if here else "no folder here, and on the hub"
            raise ValueError(f"no model could be read from {source} ({where}): {_line(error)}") from error


def _hub_name(source: str) -> bool:
    """Whether this may be a name on the hub: "name" or "owner/name", not what lies in a folder that is here."""
    path = Path(source)
    return bool(_HUB_ID.fullmatch(source)) and not path.exists() and (path.name == source or not path.parent.is_dir())


def _complete(source: str, model: Any, tokenizer: Any, report: dict[str, Any]) -> None:
    for kind, what in (("missing_keys", "has no weights for"), ("mismatched_keys", "has weights of another shape for")):
        shown = named_weights(report, kind)
        if shown:
            raise ValueError(f"{source} is no trained classifier: it {what} {shown}")
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise ValueError(f"{source} has no tokenizer beside the model: its vocabulary is empty")
    table = model.get_input_embeddings()
    size = getattr(table, "num_embeddings", None)
    if size is not None and len(tokenizer) > size:
        raise ValueError(f"{source} has a tokenizer of {len(tokenizer)} tokens, more than the model's {size}")


def _line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no more is known'}"
