"""See both systems at work, in four parts:

  the worked example of the NeuroGame paper, from its equations;
  a trained classifier of pairs of texts, scored and explained;
  a small one, trained now;
  the attractor network, trained now on the embedded digits, without backpropagation.

A report of two explanations and a figure of the attractor's trajectory are written to the output folder. The two parts
with classifiers need the extra `nli`, the attractor needs the extra `plot`; a part that lacks something is left out.
"""

import argparse
from pathlib import Path

from spinformer._base.extras import require
from spinformer.attention.worked_example import WORDS, worked_example


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("--model", help="folder of a classifier with a game (default: the small one of the package)")
    add("--output", type=Path, default=Path("runs/demo"), help="folder for report and figure (default %(default)s)")
    add("--epochs", type=int, default=4, help="epochs of the attractor's training (default %(default)s)")
    add("--small-epochs", type=int, default=12, help="epochs of the small classifier's training (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print every part that can run, and say where report and figure are."""
    args.output.mkdir(parents=True, exist_ok=True)
    _print_example()
    files = {"the report of the two explanations": _classifiers(args), "the figure of the trajectory": _attractor(args)}
    print()
    for name, path in files.items():
        if path is not None:
            print(f"{name}: {path}")
    return 0


def _print_example() -> None:
    print(f"The worked example of the NeuroGame paper: {' '.join(WORDS)!r}, three tokens, three coalitions\n")
    print(f"  {'figure':<36}{'from the equations':<30}printed in the paper")
    for figure in worked_example():
        ours = "  ".join(f"{number:.4f}" for number in figure.computed)
        theirs = "" if figure.printed is None else "  ".join(figure.printed)
        note = "   <- does not follow" if figure.agrees is False else ""
        print(f"  {figure.name:<36}{ours:<30}{theirs}{note}")


def _classifiers(args: argparse.Namespace) -> Path | None:
    """Score and explain the trained classifier, train a small one; the path of the report, None if left out."""
    from spinformer.models.shipped import default_model

    title = "A trained NeuroGame classifier of pairs of texts, on the embedded test pairs of SNLI"
    try:
        require("transformers", extra="nli")
        require("accelerate", extra="nli")
        model = args.model or default_model()
    except (ModuleNotFoundError, FileNotFoundError) as error:
        print(f"\n{title}, and a small one that borrows its tokenizer, are left out: {error}")
        return None
    from spinformer.cli import demo_classifier

    print(f"\n{title}:\n")
    report = demo_classifier.score_and_explain(model, args.output)
    print("\nA small one, trained now from random weights on the embedded pairs (chance is a third):\n")
    record = demo_classifier.train_small(model, args.output, args.small_epochs)
    accuracies = [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry]
    shown = ", ".join(f"{accuracy:.1%}" for accuracy in accuracies)
    print(f"  {record['pairs']:,} pairs in {record['seconds']:.0f} s; accuracy on dev after each epoch: {shown}")
    return report


def _attractor(args: argparse.Namespace) -> Path | None:
    """Train the attractor and draw a trajectory; the path of the figure, None if left out."""
    title = "The attractor network, trained now"
    try:
        require("matplotlib", extra="plot")
    except ModuleNotFoundError as error:
        print(f"\n{title}, is left out: {error}")
        return None
    from spinformer.cli import demo_attractor

    print(f"\n{title}:")
    return demo_attractor.train_and_restore(args.output, epochs=args.epochs)
