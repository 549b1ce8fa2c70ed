"""Options and small helpers that several commands share."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import torch

from spinformer._base.files import sha256
from spinformer.data.texts import split_source
from spinformer.models.shipped import named_model

MODEL_HELP = 'a folder that `save_pretrained` wrote, a name on the hub, or "small", which is part of this package'


class ColumnOptions(TypedDict, total=False):
    """The options of `spinformer.data.sources.load_texts` that say which columns to read."""

    labelled: bool
    first: str
    second: str | None
    label: str | None


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add MODEL, the classifier."""
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the device to compute on."""
    parser.add_argument(
        "--device",
        default="cuda" if torch.cuda.is_available() else "cpu",
        help="device to compute on (default: a GPU if there is one)",
    )


def add_max_length(parser: argparse.ArgumentParser) -> None:
    """Add the number of tokens kept of a text."""
    parser.add_argument(
        "--max-length", type=int, help="tokens read; longer texts are cut (default: as many as the model takes)"
    )


def add_columns(parser: argparse.ArgumentParser, *, labelled: bool = False, note: str = "") -> None:
    """Add the names of the columns to read; labelled: files have a column of labels too; note: more for the help."""
    names = "TEXT,LABEL or PREMISE,HYPOTHESIS,LABEL" if labelled else "TEXT or PREMISE,HYPOTHESIS"
    parser.add_argument(
        "--columns", type=names_list, metavar="NAMES", help=f"columns to read: {names}{note} (default: the usual names)"
    )


def names_list(text: str) -> list[str]:
    """The type of an option whose value is names with commas between."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"expected names with commas between, as A,B; got {text!r}")
    return names


def text_columns(names: list[str] | None, *, labelled: bool) -> ColumnOptions:
    """Options of `load_texts` for the value of --columns: one or two texts, then the label if there is one."""
    if names is None:
        return {"labelled": labelled}
    texts, label = (names[:-1], names[-1]) if labelled else (names, None)
    if len(texts) not in (1, 2):
        raise ValueError(
            f"--columns must be one or two texts{' and the label' if labelled else ''}; got {','.join(names)}"
        )
    return {
        "labelled": labelled,
        "first": texts[0],
        "second": texts[1] if len(texts) == 2 else None,
        "label": label,
    }


def short_name(source: str) -> str:
    """The name of a file without its folders, as result files store it; other names stay as they are."""
    return "+".join(Path(part).name if Path(part).exists() else part for part in split_source(source))


def weight_digests(model: str) -> dict[str, str]:
    """The sha256 of each file of weights in the model's folder, by its name."""
    return {path.name: sha256(path) for path in sorted(Path(named_model(model)).glob("*.safetensors"))}


def aligned(texts: Mapping[str, str]) -> str:
    """A line for each name and its text, the texts below each other, for help."""
    width = max(map(len, texts))
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in texts.items())
