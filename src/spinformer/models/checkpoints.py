"""Loading a checkpoint, or saying in one line why it cannot be loaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError


def load(from_pretrained: Callable[..., Any], config_class: type, path: Any, *args: Any, **kwargs: Any) -> Any:
    """from_pretrained(path, ...), but a folder that is not there, holds another architecture, is damaged or lacks
    weights is a ValueError that says so. `config_class.model_type` is the architecture expected.
    """
    expected = config_class.model_type  # type: ignore[attr-defined]
    folder = Path(path)
    if folder.exists() or str(path).startswith((".", "/")):
        _check_folder(folder, expected)
    asked = kwargs.pop("output_loading_info", False)
    try:
        model, info = from_pretrained(path, *args, output_loading_info=True, **kwargs)
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: the checkpoint is damaged ({error})") from error
    except RuntimeError as error:
        if "size mismatch" not in str(error) and "mismatched" not in str(error):
            raise
        raise ValueError(f"{path}: the weights do not fit the configuration beside them ({error})") from error
    for kind in ("missing_keys", "mismatched_keys", "unexpected_keys"):
        names = sorted(map(str, info.get(kind) or ()))
        if names:
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise ValueError(f"{path}: the weights are not those of its config.json; {kind.replace('_', ' ')}: {shown}")
    return (model, info) if asked else model


def _check_folder(folder: Path, expected: str) -> None:
    if not folder.is_dir():
        raise ValueError(f"{folder}: expected a folder with config.json and model.safetensors; there is none")
    config = folder / "config.json"
    if not config.is_file():
        raise ValueError(
            f"{folder}: no config.json, so it is not a model; found {sorted(p.name for p in folder.iterdir())}"
        )
    try:
        kind = json.loads(config.read_text()).get("model_type")
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{config}: damaged, it is not JSON ({error})") from error
    if kind != expected:
        raise ValueError(f"{folder}: expected a {expected!r} model; its config.json says {kind!r}")
