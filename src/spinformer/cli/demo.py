"""See it work, in two minutes on two cores:

  1. a pair of sentences explained: which words and which pairs of words decided;
  2. a sentiment classifier, fine-tuned now, scored on held-out texts, grounded and explained;
  3. digits restored by an attractor network that learns now, without backpropagation;
  4. one line on the worked example of the NeuroGame paper.

The lines of Python that it shows are those that it runs. Pages and a figure are written to the output folder. Parts 1
and 2 need the extra `nli` and a classifier: the one that the package brings, or any Hugging Face sequence classifier
given with --model, with a game or without. What is missing is named in one line, and the rest goes on.
"""

import argparse
from pathlib import Path

from spinformer._base import checks
from spinformer._base.extras import require
from spinformer._base.progress import remark
from spinformer.cli import demo_digits, demo_texts
from spinformer.cli.options import check_output_folder


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("--model", help="folder of a classifier with a game (default: the small one of the package)")
    add("--output", type=Path, default=Path("runs/demo"), help="folder for pages and figure (default %(default)s)")
    add("--texts", type=int, default=512, help="texts that the classifier learns from (default %(default)s)")
    add("--epochs", type=int, default=4, help="epochs of the attractor's training (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Every part that can run, then where the files lie."""
    checks.at_least("--texts", args.texts, 64)
    checks.at_least("--epochs", args.epochs, 1)
    check_output_folder("--output", args.output)
    files = [*_texts(args), demo_digits.restore_digits(args.output, epochs=args.epochs)]
    print(f"\n4. {_example()}")
    written = [str(path) for path in files if path is not None]
    if written:
        remark(f"\nwritten: {', '.join(written)}")
    return 0


def _texts(args: argparse.Namespace) -> list[Path]:
    """The parts with a classifier; their pages."""
    from spinformer.models.shipped import EMBEDDED, SMALL, default_model

    try:
        require("transformers", extra="nli")
        require("accelerate", extra="nli")
        model = args.model or default_model()
        model = SMALL if model == str(EMBEDDED) else model
    except (ModuleNotFoundError, FileNotFoundError) as error:
        print(f"1 and 2, the explained pair and a classifier of your own, are left out: {error}")
        return []
    args.output.mkdir(parents=True, exist_ok=True)
    return [
        demo_texts.explain_pair(model, args.output),
        demo_texts.own_classifier(model, args.output, args.texts),
    ]


def _example() -> str:
    from spinformer.attention.worked_example import WORDS, worked_example

    printed = [figure for figure in worked_example() if figure.agrees is not None]
    right = sum(figure.agrees is True for figure in printed)
    return (
        f"The worked example of the NeuroGame paper, {' '.join(WORDS)!r}: {right} of its {len(printed)} printed "
        "figures follow from its equations (`spinformer.attention.worked_example` computes each)."
    )
