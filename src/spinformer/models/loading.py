"""Load models and encoders from a folder or the Hugging Face hub, or say in one line why that is not possible.

Weights that are missing, of another shape or damaged are an error: nothing is filled with random numbers.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError

from spinformer._base import checks
from spinformer._base.devices import usable_device
from spinformer._base.extras import require
from spinformer._base.shared_state import SharedChange
from spinformer.models.adapters import adapted_classifier, adapter_options, base_of, has_tokenizer
from spinformer.models.hidden_states import vocabulary_size
from spinformer.models.hub import check_source
from spinformer.models.padding import set_padding
from spinformer.models.pretrained import (
    check_config,
    pretrained_classifier,
    pretrained_config,
    pretrained_model,
    pretrained_tokenizer,
)
from spinformer.models.rounding import are_rounded, read_weights
from spinformer.models.shipped import named_model
from spinformer.models.size_limits import bounded_by_weights, weight_paths

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_FATAL = ("mismatched_keys", "missing_keys")  # of the loading report of transformers
HALF = (torch.float16, torch.bfloat16)


def load_classifier(
    path_or_hub_id: str | Path, device: torch.device | str | None = None
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """A classifier, in evaluation mode, and its tokenizer.

    path_or_hub_id: a folder that `save_pretrained` wrote, or a name on the hub; ours and every other architecture that
    AutoModelForSequenceClassification knows; an adapter of peft, which names its base model
    (`spinformer.models.adapters`); or "small", the classifier of sentence pairs inside this package
    (`spinformer.models.shipped`). device: cuda where there is one, else cpu, unless given. On a CPU weights in half
    precision become float32, which is several times as fast there; quantised ones stay as they are.
    """
    checks.instance("path_or_hub_id", path_or_hub_id, str, Path)
    source, device = named_model(str(path_or_hub_id)), usable_device(device)
    check_source(source)
    with one_line_errors(source, Exception):
        adapter = adapter_options(source)
        if adapter is None:
            model, report = pretrained_classifier(source, output_loading_info=True, ignore_mismatched_sizes=True)
            report = {kind: report.get(kind) for kind in _FATAL}  # weights that are left over are those of other heads
        else:
            model, report = adapted_classifier(source, adapter)
        tokenizer = pretrained_tokenizer(source if adapter is None or has_tokenizer(source) else base_of(adapter))
    check_weights(source, report, (*_FATAL, "unexpected_keys"), expected="a trained classifier")
    _check_tokenizer(source, model, tokenizer)
    set_padding(model, tokenizer)
    model = model.to(device).eval()
    if device.type == "cpu" and model.dtype in HALF and not getattr(model, "is_quantized", False):
        model = model.float()
    return model, tokenizer


def load_config(path_or_hub_id: str | Path) -> "PreTrainedConfig":
    """The configuration alone, which has the class names."""
    source = named_model(str(path_or_hub_id))
    check_source(source)
    with one_line_errors(source, Exception):
        return pretrained_config(source)


def load_tokenizer(path_or_hub_id: str | Path) -> "PreTrainedTokenizerBase":
    """The tokenizer alone."""
    source = named_model(str(path_or_hub_id))
    check_source(source)
    with one_line_errors(source, Exception):
        return pretrained_tokenizer(source)


def load_encoder(path_or_hub_id: str | Path, config: "PreTrainedConfig", **options: Any) -> "PreTrainedModel":
    """An encoder with all of its weights, in float32; options: of its class, beside the configuration."""
    source = named_model(str(path_or_hub_id))
    with one_line_errors(source):
        encoder, report = pretrained_model(
            source,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **options,
        )
    check_weights(source, report, _FATAL)
    loaded: PreTrainedModel = encoder
    return loaded


def load_own(
    from_pretrained: Callable[..., Any],
    model_type: str,
    path: str | Path,
    *args: Any,
    ignored: Sequence[str],
    **kwargs: Any,
) -> Any:
    """from_pretrained(path, ...) of one of our models, with the checks of this module.

    model_type: what config.json must say; ignored: how the names of weights begin that may be left over, because they
    belong to a larger model. The result is as of `from_pretrained`, with the report where `output_loading_info` asks
    for it.
    """
    source = str(path)
    if Path(source).exists() or source.startswith((".", "/")):
        check_source(source)
        _check_model_type(Path(source), model_type)
    with_report = kwargs.pop("output_loading_info", False)
    kwargs["ignore_mismatched_sizes"] = True  # so that they are reported, and refused below by name
    kwargs.pop("trust_remote_code", None)
    kwargs["output_loading_info"] = True
    with one_line_errors(source), bounded_by_weights(source):
        check_config(source)
        paths = weight_paths(source)
        if are_rounded(paths):
            model, report = _load_rounded(from_pretrained, source, paths[0], *args, **kwargs)
        else:
            model, report = from_pretrained(path, *args, trust_remote_code=False, **kwargs)
    report["unexpected_keys"] = {name for name in report["unexpected_keys"] if not name.startswith(tuple(ignored))}
    check_weights(source, report, (*_FATAL, "unexpected_keys"))
    return (model, report) if with_report else model


def _load_rounded(
    from_pretrained: Callable[..., Any], source: str, weights: Path, *args: Any, **kwargs: Any
) -> tuple[Any, Any]:
    """from_pretrained of a folder whose weights are in 8 bits: it is given them restored."""
    kwargs["config"] = kwargs.get("config") or pretrained_config(source)
    state = read_weights(weights)
    model, report = from_pretrained(None, *args, state_dict=state, trust_remote_code=False, **kwargs)
    model.config.name_or_path = model.name_or_path = source
    return model, report


@contextmanager
def one_line_errors(source: str, kinds: type[Exception] = OSError) -> Iterator[None]:
    """Read `source` with transformers kept quiet; what goes wrong is a ValueError of one line that names `source`.

    kinds: the errors meant, beside those of damaged files.
    """
    with quiet_transformers():
        try:
            yield
        except (SafetensorError, json.JSONDecodeError) as error:
            reason = f"the checkpoint is damaged ({_line(error)})"
            raise ValueError(f"no model could be read from {source}: {reason}") from error
        except kinds as error:
            if isinstance(error, ValueError) and str(error).startswith(
                (source, f"no model could be read from {source}")
            ):
                raise  # of a check of this module, within
            where = "" if Path(source).is_dir() else "no such folder here, and on the hub "
            raise ValueError(f"no model could be read from {source}: {where}{_line(error)}") from error


def quiet_transformers() -> SharedChange:
    """No warnings and progress bars of transformers inside the block, until the last thread's is over."""
    return _QUIET


def _silence() -> Callable[[], None]:
    logging = require("transformers.utils.logging", extra="nli")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()

    def undo() -> None:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()

    return undo


_QUIET = SharedChange(_silence)


def check_weights(
    source: str, report: Mapping[str, Any], kinds: Sequence[str], *, expected: str = "its config.json"
) -> None:
    """A ValueError that names the first weights of these kinds in the loading report of transformers, if any.

    expected: whose weights they should have been.
    """
    for kind in kinds:
        names = sorted(name if isinstance(name, str) else str(name[0]) for name in report.get(kind) or ())
        if names:
            listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise ValueError(f"{source}: the weights are not those of {expected}; {kind.replace('_', ' ')}: {listed}")


def _check_model_type(folder: Path, expected: str) -> None:
    config = folder / "config.json"
    if not config.is_file():
        files = sorted(path.name for path in folder.iterdir())
        raise ValueError(f"{folder}: no config.json, so it is not a model; its files are {files}")
    try:
        options = json.loads(config.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{config}: damaged, it is not JSON ({error})") from error
    model_type = options.get("model_type") if isinstance(options, dict) else None
    if model_type != expected:
        raise ValueError(f"{folder}: expected a {expected!r} model; its config.json says {model_type!r}")


def _check_tokenizer(source: str, model: Any, tokenizer: Any) -> None:
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise ValueError(f"{source} has no tokenizer beside the model: its vocabulary is empty")
    size = vocabulary_size(model)
    if size is not None and len(tokenizer) > size:
        raise ValueError(f"{source} has a tokenizer of {len(tokenizer)} tokens, more than the model's {size}")


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if len(lines) > 1 and lines[0].endswith(":"):
        lines[0] += f" {lines[1]}"
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
