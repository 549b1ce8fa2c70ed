"""What the file of an attractor network holds, read and checked before a network is built from it."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from torch import Tensor

from spinformer._base import checks
from spinformer.models.size_limits import check_shape

Made = TypeVar("Made")


def read_header(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The notes in the header, with a configuration among them, and the tensors, all finite; else a ValueError."""
    if not path.is_file():
        raise FileNotFoundError(f"no attractor network at {path}; `spinformer train attractor` writes one")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path}: the attractor network is damaged ({error})") from error
    if "config" not in header:
        raise ValueError(f"{path} is not an attractor network: its header has no configuration")
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{path}: {name} must hold floating-point numbers; got {tensor.dtype}")
        checks.finite(f"{path}: {name}", tensor)
    return header, tensors


def read_options(path: Path, name: str, text: str) -> dict[str, Any]:
    """A JSON object of the header."""
    try:
        options = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: its {name} is damaged, it is not JSON ({error})") from error
    if not isinstance(options, dict):
        raise ValueError(f"{path}: its {name} must be a JSON object; got {type(options).__name__}")
    return options


def made_of(path: Path, name: str, kind: type[Made], options: Any) -> Made:
    """kind(**options), where every option is one that it has and every number is finite."""
    try:
        made = kind(**options)
    except TypeError as error:
        raise ValueError(f"{path}: its {name} is damaged ({error})") from error
    for option, value in vars(made).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{path}: {option} of its {name} must be finite; got {value}")
    return made


def check_sizes(path: Path, config: Any, tensors: Mapping[str, Tensor]) -> None:
    """A ValueError where the tensors are not of the sizes that the configuration says."""
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    try:
        for option in ("patch", "rank", "dim"):
            if option != "dim" or config.dim is not None:
                checks.at_least(option, getattr(config, option), 1)
        for side in (*config.image, *(config.reach or ())):
            checks.at_least("each of image and reach", side, 0)
        channels, height, width = config.image
        rows, columns = height // config.patch, width // config.patch
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: its configuration is damaged ({error})") from error
    spin = 2 * channels * config.patch**2
    dim, source = config.dim or spin, str(path)
    check_shape(source, shapes, "mean", (rows * columns, dim))
    check_shape(source, shapes, "embedding.frame", (dim, spin))
    if config.shape == "low-rank":
        check_shape(source, shapes, "layer.pairs.left", (rows * columns, dim, config.rank))
    if config.shape == "shared":
        check_shape(source, shapes, "layer.pairs.query", (config.rank, dim))
    if config.shape == "relative":
        down, across = config.reach or (rows - 1, columns - 1)
        check_shape(source, shapes, "layer.pairs.table", ((2 * down + 1) * (2 * across + 1), dim, dim))
