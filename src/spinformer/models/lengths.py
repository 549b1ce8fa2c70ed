"""How many tokens a model reads, and how many it knows."""

from typing import Any

from spinformer._base import checks
from spinformer.models.hidden_states import max_tokens, vocabulary_size
from spinformer.models.outputs import config_of

# What a model without a limit of its own reads, where nobody says otherwise: attention over more takes long.
UNLIMITED = 512


def model_limit(model: Any, tokenizer: Any) -> int | None:
    """The largest number of tokens that a model takes; None where it has no limit."""
    config = config_of(model)
    positions = max_tokens(model) or getattr(config, "max_position_embeddings", None)
    limits = (positions, getattr(tokenizer, "model_max_length", None))
    known = [
        size for size in limits if isinstance(size, int) and 0 < size < 10**9
    ]  # transformers writes "none" as 1e30
    return min(known, default=None)


def check_vocabulary(model: Any, tokenizer: Any) -> None:
    """A ValueError where the tokenizer has more tokens than the model has embeddings."""
    size = vocabulary_size(model)
    if size is not None and hasattr(tokenizer, "__len__") and len(tokenizer) > size:
        raise ValueError(f"the tokenizer must have at most {size} tokens, which the model knows; got {len(tokenizer)}")


def resolve_max_length(model: Any, tokenizer: Any, max_length: int | None) -> int:
    """`max_length`, checked, or the model's own limit where it is None."""
    if max_length is not None:
        check_max_length(model, tokenizer, max_length)
        return max_length
    return model_limit(model, tokenizer) or UNLIMITED


def check_max_length(model: Any, tokenizer: Any, max_length: int) -> None:
    """A ValueError where the model does not take texts of max_length tokens."""
    checks.at_least("max_length", max_length, 4)  # what the special tokens leave must hold something of each text
    limit = model_limit(model, tokenizer)
    if limit is not None and max_length > limit:
        raise ValueError(f"max_length must be at most {limit}, what the model takes; got {max_length}")
