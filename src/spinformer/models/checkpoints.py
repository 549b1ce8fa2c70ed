"""Loading a checkpoint, or saying in one line why it cannot be loaded."""

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError


def load(
    from_pretrained: Callable[..., Any],
    config_class: type,
    path: Any,
    *args: Any,
    beside: tuple[str, ...] = (),
    **kwargs: Any,
) -> Any:
    """from_pretrained(path, ...), but a folder that is not there, holds another architecture, is damaged or lacks
    weights is a ValueError that says so. `config_class.model_type` is the architecture expected; beside: how the names
    of weights begin that are left alone where the model has no place for them.
    """
    expected = config_class.model_type  # type: ignore[attr-defined]
    folder = Path(path)
    if folder.exists() or str(path).startswith((".", "/")):
        _check_folder(folder, expected)
    asked = kwargs.pop("output_loading_info", False)
    kwargs["ignore_mismatched_sizes"] = True  # so that they are reported, and refused below by name
    with reading(path), quiet():
        model, info = from_pretrained(path, *args, output_loading_info=True, **kwargs)
    info["unexpected_keys"] = {name for name in info["unexpected_keys"] if not name.startswith(beside)}
    check_weights(path, info, ("mismatched_keys", "missing_keys", "unexpected_keys"))
    return (model, info) if asked else model


@contextmanager
def reading(path: Any) -> Iterator[None]:
    """Whatever goes wrong in reading `path` is a ValueError of one line that names it."""
    try:
        yield
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: the checkpoint is damaged ({_line(error)})") from error
    except OSError as error:
        raise ValueError(f"{path}: no model can be read there ({_line(error)})") from error


def check_weights(path: Any, info: dict[str, Any], kinds: Sequence[str]) -> None:
    """Nothing of these kinds in the loading report of transformers."""
    for kind in kinds:
        shown = named_weights(info, kind)
        if shown:
            raise ValueError(f"{path}: the weights are not those of its config.json; {kind.replace('_', ' ')}: {shown}")


def named_weights(info: dict[str, Any], kind: str) -> str:
    """The first weights of this kind in the loading report of transformers, and how many more; empty for none."""
    names = sorted(name if isinstance(name, str) else str(name[0]) for name in info.get(kind) or ())
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


@contextmanager
def quiet() -> Iterator[None]:
    """No reports and bars of transformers while loading: what matters of them is raised as an error."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _check_folder(folder: Path, expected: str) -> None:
    if not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder with config.json and model.safetensors; there is none")
    config = folder / "config.json"
    if not config.is_file():
        raise ValueError(
            f"{folder}: no config.json, so it is not a model; found {sorted(p.name for p in folder.iterdir())}"
        )
    try:
        options = json.loads(config.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{config}: damaged, it is not JSON ({error})") from error
    kind = options.get("model_type") if isinstance(options, dict) else None
    if kind != expected:
        raise ValueError(f"{folder}: expected a {expected!r} model; its config.json says {kind!r}")
