"""Both systems at work: the NeuroGame paper's worked example; a trained classifier of sentence pairs, scored and
explained; a small one trained on the spot; digits through the attractor.

The attractor is trained on the spot too, on the embedded digits, without backpropagation. A report of two explanations
and a picture of the attractor's trajectory are written to the output folder (needs the extras `nli` and `plot`).
"""

import argparse
from pathlib import Path

from spinformer.example import WORDS, worked_example
from spinformer.experiments import attractor_demo
from spinformer.extras import require


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--output", type=Path, default=Path("runs/demo"), help="folder for report and picture (default runs/demo)"
    )
    parser.add_argument("--epochs", type=int, default=4, help="of the attractor's training (default 4)")
    parser.add_argument("--small-epochs", type=int, default=12, help="of the small classifier's (default 12)")


def run(args: argparse.Namespace) -> int:
    """Print every part and say where report and picture lie."""
    require("transformers", extra="nli")
    from spinformer.experiments import nli_demo

    args.output.mkdir(parents=True, exist_ok=True)
    _example()
    print("\nA trained NeuroGame classifier of sentence pairs, on the embedded test pairs of SNLI:\n")
    report = nli_demo.shipped(args.output)
    print("\nA small one, trained now from random weights on the embedded pairs (chance is a third):\n")
    record = nli_demo.small(args.output, args.small_epochs)
    reached = [entry["eval_accuracy"] for entry in record["history"] if "eval_accuracy" in entry]
    shown = ", ".join(f"{accuracy:.1%}" for accuracy in reached)
    print(f"  {record['pairs']:,} pairs in {record['seconds']:.0f} s; accuracy on dev after each epoch: {shown}")
    print("\nThe attractor network, trained now:")
    picture = attractor_demo.demo(args.output, epochs=args.epochs)
    print(f"\nThe report of the two explanations lies in {report},")
    print(f"the picture of the attractor's trajectory in {picture}.")
    return 0


def _example() -> None:
    print(f"The worked example of the NeuroGame paper: {' '.join(WORDS)!r}, three tokens, three coalitions\n")
    print(f"  {'figure':<36}{'from the equations':<30}printed in the paper")
    for figure in worked_example():
        ours = "  ".join(f"{number:.4f}" for number in figure.computed)
        theirs = "" if figure.printed is None else "  ".join(figure.printed)
        note = "   <- does not follow" if figure.agrees is False else ""
        print(f"  {figure.name:<36}{ours:<30}{theirs}{note}")
