"""The one place that calls the loaders of transformers. Code that a model folder brings is never run, and never asked
about.

Sizes are bounded by the weights while a model is built: see `spinformer.models.size_limits`.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spinformer._base.deferred import catch_up
from spinformer._base.extras import require
from spinformer.models.size_limits import bounded_by_weights

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

# Whole numbers of a configuration that Python counts up to before any weight is looked at.
MAX_COUNT = 1_000_000
COUNTS = ("layers", "layer", "labels", "depth", "depths", "blocks", "stages", "groups", "experts")
# Options that may name a repository of compiled code.
IMPLEMENTATIONS = ("attn_implementation", "experts_implementation")


def pretrained_config(source: str) -> "PreTrainedConfig":
    """The configuration in a folder or on the hub."""
    config: PreTrainedConfig = _load("AutoConfig", source)
    return config


def pretrained_tokenizer(source: str) -> "PreTrainedTokenizerBase":
    """The tokenizer in a folder or on the hub."""
    tokenizer: PreTrainedTokenizerBase = _load("AutoTokenizer", source)
    return tokenizer


def pretrained_classifier(source: str, **options: Any) -> Any:
    """What AutoModelForSequenceClassification reads from a folder or the hub; options: as it takes them."""
    _load("AutoConfig", source)  # what is wrong with it is said before what is wrong with the weights
    with bounded_by_weights(source):
        return _load("AutoModelForSequenceClassification", source, **options)


def pretrained_model(source: str, **options: Any) -> Any:
    """What AutoModel reads from a folder or the hub; options: as it takes them."""
    with bounded_by_weights(source):
        return _load("AutoModel", source, **options)


def model_of(config: "PreTrainedConfig", **options: Any) -> "PreTrainedModel":
    """A model of a configuration, with random weights; options: as AutoModel.from_config takes them."""
    catch_up()
    auto = require("transformers", extra="nli").AutoModel
    model: PreTrainedModel = auto.from_config(config, trust_remote_code=False, **options)
    return model


def check_config(source: str) -> None:
    """A ValueError where config.json has a count beyond reason, or names code to fetch; before it is interpreted."""
    hub = require("transformers.utils.hub", extra="nli")
    try:
        path = hub.cached_file(source, "config.json", _raise_exceptions_for_missing_entries=False)
        with open(path, encoding="utf-8") as file:
            options = json.load(file)
    except (OSError, ValueError, TypeError, RecursionError):
        return  # the loader itself says what is wrong
    if isinstance(options, Mapping):
        _check_options(source, options)


def _check_options(source: str, options: Mapping[str, Any], prefix: str = "") -> None:
    for name, value in options.items():
        if isinstance(value, Mapping):
            _check_options(source, value, f"{prefix}{name}.")
        counted = str(name).rpartition("_")[2] in COUNTS
        if counted and isinstance(value, int | float) and not value <= MAX_COUNT:
            raise ValueError(f"{source}: {prefix}{name} must be at most {MAX_COUNT:,}; its config.json says {value!r}")
        if str(name).lstrip("_") in IMPLEMENTATIONS and value is not None and not _is_plain(value):
            raise ValueError(
                f"{source}: {prefix}{name} must name an implementation of transformers, not code to fetch; its "
                f"config.json says {value!r}"
            )


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and "/" not in value and ":" not in value


def _load(auto: str, source: str, **options: Any) -> Any:
    """By this class of transformers; a folder that needs code of its own is an error of one line."""
    catch_up()  # the classes of transformers must know ours
    loader = getattr(require("transformers", extra="nli"), auto)
    check_config(source)
    try:
        return loader.from_pretrained(source, trust_remote_code=False, **options)
    except ValueError as error:
        if "trust_remote_code" not in str(error):
            raise
        raise ValueError(
            f"{source} needs Python code of its own, which is never run; expected an architecture and a tokenizer that "
            "transformers or spinformer has"
        ) from error
