"""What `spinformer explain` reads and writes: which words name files, and which outputs can be written."""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from spinformer._base import checks
from spinformer._base.choices import FORMATS
from spinformer._base.progress import progress, remark
from spinformer.cli.options import check_not_read, check_output_file, check_output_folder
from spinformer.data.files import FORMATS as READ
from spinformer.data.files import is_format

if TYPE_CHECKING:
    from spinformer.explain import Explanation

SAVED = re.compile(r"\d{4,}\.json")  # names of the files in a folder of explanations


def names_texts(word: str) -> bool:
    """Whether a word names a file of texts rather than being a text; a FileNotFoundError where the file is missing."""
    if not is_format(word) or os.path.isdir(word):
        return False
    present = os.path.isfile(word)  # Path would refuse a long text
    if not present and len(word.split()) == 1:
        raise FileNotFoundError(f"no file {word}")
    return present


def take_file(args: argparse.Namespace) -> None:
    """Make TEXT the value of --file where it names a file of texts; any other file is a ValueError, and no text."""
    if args.file is not None:
        return
    if args.text_pair is not None:
        for word in (args.text, args.text_pair):
            if is_format(word) and os.path.isfile(word):
                raise ValueError(f"{word} is a file of texts, which is named alone; got a TEXT and a SECOND")
        return
    word = args.model if args.text is None else args.text  # a word alone may be taken for MODEL
    if os.path.isfile(word) and not is_format(word):
        raise ValueError(f"{word} is a file of an unknown kind; expected {', '.join(READ)}, with .gz or without")
    if args.text is not None and names_texts(args.text):
        args.file, args.text = args.text, None


def check_outputs(args: argparse.Namespace) -> None:
    """An error, before any work, where an output cannot be written, has an odd suffix, or is the file that is read."""
    read = () if args.file is None else (args.file,)
    for name in ("html", "overview"):
        path = getattr(args, name)
        if path is not None and path.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"--{name} must name a file that ends in .html; got {path}")
        check_output_file(f"--{name}", path)
        check_not_read(f"--{name}", path, *read)
    if args.overview is not None and args.file is None:
        raise ValueError("--overview is of the texts of a file; got one text")
    check_output_folder("--figures", args.figures)
    if args.output is None:
        return
    checks.at_least("--pairs", args.pairs, 0)
    suffix = args.output.suffix.lower()
    if args.file is None and suffix not in ("", ".json", *FORMATS):
        raise ValueError(f"--output of one text must end in .json, {', '.join(FORMATS)}; got {args.output}")
    if args.file is None or suffix in FORMATS or args.overview is not None:
        check_output_file("--output", args.output)
        check_not_read("--output", args.output, *read)
        return
    if suffix and not args.output.is_dir():
        raise ValueError(
            f"--output of a file must end in {', '.join(FORMATS)}, or be a folder, there or without a suffix; "
            f"got {args.output}"
        )
    check_output_folder("--output", args.output)
    if SAVED.fullmatch(Path(args.file).name):  # one of the names that are written there
        check_not_read("--output", args.output / Path(args.file).name, args.file)


def write(args: argparse.Namespace, explanations: "list[Explanation]") -> None:
    """The files asked for, of one text or of those in a report."""
    numbers = range(1, len(explanations) + 1)
    named = list(
        zip(["explanation"] if args.file is None else map("{:04d}".format, numbers), explanations, strict=True)
    )
    if args.output is not None and args.output.suffix.lower() in FORMATS:
        from spinformer.explain.corpus import write_rows

        remark(f"\nsaved as {write_rows(explanations, args.output, pairs=args.pairs)}")
    elif args.output is not None and args.file is None:
        remark(f"\nsaved as {explanations[0].save(args.output)}")
    elif args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        for name, explanation in named:
            explanation.save(args.output / f"{name}.json")
        remark(f"\nsaved in {args.output}")
    if args.html is not None:
        from spinformer.explain.render.html import save_html

        remark(f"report: {save_html(explanations, args.html)}")
    if args.figures is not None:
        args.figures.mkdir(parents=True, exist_ok=True)
        for name, explanation in named if len(named) == 1 else progress(named, "draw"):
            for kind in explanation.plots:
                explanation.plot(kind, args.figures / f"{name}-{kind}.png")
        remark(f"figures: {args.figures}")
