"""Options of a frozen dataclass from YAML files and command-line flags, with the types that its fields declare."""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import MISSING, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from spinformer._base import checks
from spinformer._base.extras import require


def option(default: Any, text: str, choices: Callable[[], Sequence[str]] | None = None) -> Any:
    """A field with a help text; choices: returns the values that are allowed, and is called at each use."""
    metadata = {"help": text, "choices": choices}
    if isinstance(default, dict | list):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def check_types(instance: Any) -> None:
    """Convert and check every field of a frozen dataclass by its type and its choices."""
    hints = get_type_hints(type(instance))
    for one in fields(instance):
        value = getattr(instance, one.name)
        if one.metadata["choices"] is not None:
            checks.choice(one.name, value, one.metadata["choices"]())
        object.__setattr__(instance, one.name, _typed(one.name, value, hints[one.name]))


def add_flags(parser: argparse._ActionsContainer, options: Any) -> None:
    """One flag for each field of the dataclass `options`; flags that are not given leave nothing in the namespace."""
    hints = get_type_hints(options)
    for one in fields(options):
        flag, kind = "--" + one.name.replace("_", "-"), _without_none(hints[one.name])
        default = one.default if one.default_factory is MISSING else one.default_factory()
        shown = "" if default is None or default in ({}, []) else f" (default {default})"
        text = f"{one.metadata['help']}{shown}".replace("%", "%%")
        common: dict[str, Any] = {"dest": one.name, "default": argparse.SUPPRESS, "help": text}
        if kind is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **common)
        elif one.metadata["choices"] is not None:
            parser.add_argument(flag, choices=one.metadata["choices"](), **common)
        elif get_origin(kind) is Literal:
            parser.add_argument(flag, choices=get_args(kind), **common)
        elif get_origin(kind) is list:
            parser.add_argument(flag, nargs="+", type=get_args(kind)[0], metavar="X", **common)
        elif get_origin(kind) is dict:
            parser.add_argument(flag, type=_json, metavar="JSON", **common)
        else:
            parser.add_argument(flag, type=kind, metavar=kind.__name__.upper(), **common)


def read_yaml(path: Path, readers: tuple[Path, ...] = (), *, bases: bool = True) -> dict[str, Any]:
    """The options in a YAML file, over those of the file that it names as its `base`, unless `bases` is false.

    readers: the files that named this one as their base.
    """
    yaml = require("yaml", extra="nli")
    if not path.is_file():
        raise FileNotFoundError(f"no recipe {path}")
    if path.resolve() in readers:
        raise ValueError(f"{path}: it is its own base, through other files")
    try:
        options = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    if options is None:  # nothing but comments
        options = {}
    if not isinstance(options, dict):
        raise ValueError(f"{path}: expected `option: value` lines; got {type(options).__name__}")
    base = options.pop("base", None)
    if base is None or not bases:
        return options
    if not isinstance(base, str):
        raise ValueError(f"{path}: base must be a file name; got {base!r}")
    return {**read_yaml(path.parent / base, (*readers, path.resolve())), **options}


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"expected a JSON object such as '{{\"heads\": 4}}'; got {text!r}") from error
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object; got {text!r}")
    return value


def _without_none(kind: Any) -> Any:
    """X of X | None."""
    if get_origin(kind) in (Union, UnionType):
        return next(part for part in get_args(kind) if part is not type(None))
    return kind


def _typed(name: str, value: Any, kind: Any) -> Any:
    """`value` as `kind`, if that is no guess: YAML reads 3e-5 as text and 1 as an integer."""
    if value is None and type(None) in get_args(kind):
        return None
    kind = _without_none(kind)
    if get_origin(kind) is Literal:
        checks.choice(name, value, get_args(kind))
        return value
    if get_origin(kind) is list:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{name} must be a list; got {value!r}")
        return [_typed(name, item, get_args(kind)[0]) for item in value]
    if get_origin(kind) is dict:
        kind = dict
    if kind is float and isinstance(value, str | int) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            pass
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise ValueError(f"{name} must be {kind.__name__}; got {value!r}")
    return value
