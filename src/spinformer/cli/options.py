"""Options and small helpers that several commands share.

This module and those of the commands import torch inside functions, if at all: help, a wrong option and completion need
none of it.
"""

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TypedDict

from spinformer._base.choices import METHOD_SUMMARIES, registered
from spinformer._base.files import sha256
from spinformer.data.columns import inference_names
from spinformer.data.texts import Texts, split_source

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
    """Add the device to compute on; `choose_device` chooses where none is given."""
    parser.add_argument("--device", help="device to compute on (default: a GPU if there is one)")


def choose_device(args: argparse.Namespace) -> None:
    """Where a command takes a device and none was given: a GPU if there is one."""
    if getattr(args, "device", "") is None:
        import torch

        args.device = "cuda" if torch.cuda.is_available() else "cpu"


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


def add_shown(parser: argparse.ArgumentParser) -> None:
    """Add how much is said beside the results; every command has these."""
    add = parser.add_argument_group("what is shown").add_argument
    add("--quiet", action="store_true", help="results and errors alone: no progress, no remarks")
    add("--verbose", action="store_true", help="the trace of an error before its line")


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


def check_pairs(texts: Texts, classes: Sequence[str]) -> None:
    """A ValueError where plain lines hold one text each and the classes are those of two texts compared."""
    plain = any(name.endswith((".txt", ".txt.gz")) for name in texts.source.split(" + "))
    if plain and not texts.paired and inference_names(classes, paired=True):
        raise ValueError(
            f"{texts.source}: this classifier compares two texts; expected lines of two with a tab between; got one"
        )


def check_output_file(option: str, path: Path | None) -> None:
    """An OSError of one line, before any work, where no file can be written at `path`, the value of `option`."""
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(f"{option}: expected a file to write; {path} is a folder")
    if not path.exists() or path.is_file():  # a pipe or a device is written as it is
        _check_folder(option, path, path.parent)


def check_not_read(option: str, path: Path | None, *sources: str) -> None:
    """A ValueError, before any work, where `path`, the value of `option`, is a file that is read, or a link to one.

    sources: names of texts or of other files; several of texts may be joined by +.
    """
    if path is None or not os.path.isfile(path):
        return
    for source in sources:
        for name in split_source(source):
            if os.path.isfile(name) and os.path.samefile(path, name):
                raise ValueError(f"{option} must not be a file that is read; got {path}")


def check_output_folder(option: str, path: Path | None) -> None:
    """The same for a folder that files are written to."""
    if path is not None:
        _check_folder(option, path, path)


def _check_folder(option: str, path: Path, folder: Path) -> None:
    """Write and delete a file in the first folder above that exists: rights alone do not tell of full disks."""
    folder = folder.resolve()
    present = next(place for place in (folder, *folder.parents) if place.exists())
    if not present.is_dir():
        raise NotADirectoryError(f"{option}: cannot write to {path}, because {present} is a file")
    try:
        with tempfile.TemporaryFile(dir=present):
            pass
    except OSError as error:
        raise OSError(f"{option}: cannot write to {path} ({error.strerror})") from error


def takes_color(stream: IO[str]) -> bool:
    """Whether colours may be written: to a terminal, unless NO_COLOR (https://no-color.org) says no."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def short_name(source: str) -> str:
    """The name of a file without its folders, as result files store it; other names stay as they are."""
    return "+".join(Path(part).name if Path(part).exists() else part for part in split_source(source))


def weight_digests(model: str) -> dict[str, str]:
    """The sha256 of each file of weights in the model's folder, by its name."""
    from spinformer.models.shipped import named_model  # not above: models import transformers

    return {path.name: sha256(path) for path in sorted(Path(named_model(model)).glob("*.safetensors"))}


def method_summaries() -> dict[str, str]:
    """Every explanation method in one line, those of other packages included."""
    return registered(("spinformer.explain.methods", "spinformer.games.indices"), _all_summaries, METHOD_SUMMARIES)


def _all_summaries() -> dict[str, str]:
    from spinformer.explain.methods import all_methods

    return {name: method.summary for name, method in all_methods().items()}


def aligned(texts: Mapping[str, str]) -> str:
    """A line for each name and its text, the texts below each other, for help."""
    width = max(map(len, texts))
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in texts.items())
