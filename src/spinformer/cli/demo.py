"""Both systems at work: the NeuroGame paper's worked example and a real sentence pair; digits through the attractor.

The attractor is trained on the spot on the embedded digits, without backpropagation, and a picture of its trajectory is
written to the output folder (needs the extra `plot`).
"""

import argparse
from pathlib import Path

import torch

from spinformer.assets import encoder_sample
from spinformer.attention import NeuroGameAttention
from spinformer.example import WORDS, worked_example
from spinformer.experiments import attractor_demo


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--pair", type=int, default=0, help="which of the embedded sentence pairs (default 0)")
    parser.add_argument(
        "--output", type=Path, default=Path("runs/demo"), help="folder for the picture (default runs/demo)"
    )
    parser.add_argument("--epochs", type=int, default=4, help="of the attractor's training (default 4)")
    parser.add_argument("--seed", type=int, default=0, help="for the layer's untrained weights (default 0)")


def run(args: argparse.Namespace) -> int:
    """Print every part and say where the picture lies."""
    _example()
    _sentence(args.pair, args.seed)
    print("\nThe attractor network, trained now:")
    args.output.mkdir(parents=True, exist_ok=True)
    picture = attractor_demo.demo(args.output, epochs=args.epochs)
    print(f"\nThe picture of its trajectory lies in {picture}")
    return 0


def _example() -> None:
    print(f"The worked example of the NeuroGame paper: {' '.join(WORDS)!r}, three tokens, three coalitions\n")
    print(f"  {'figure':<36}{'from the equations':<30}printed in the paper")
    for figure in worked_example():
        ours = "  ".join(f"{number:.4f}" for number in figure.computed)
        theirs = "" if figure.printed is None else "  ".join(figure.printed)
        note = "   <- does not follow" if figure.agrees is False else ""
        print(f"  {figure.name:<36}{ours:<30}{theirs}{note}")


def _sentence(pair: int, seed: int) -> None:
    sample = encoder_sample()
    if not 0 <= pair < len(sample.pairs):
        raise ValueError(f"--pair must be from 0 to {len(sample.pairs) - 1}; got {pair}")
    torch.manual_seed(seed)
    layer = NeuroGameAttention(sample.hidden.shape[-1]).eval()
    with torch.no_grad():
        output = layer(sample.hidden[pair : pair + 1], sample.mask[pair : pair + 1])
    chosen = sample.pairs[pair]
    tokens = list(chosen["tokens"])  # type: ignore[call-overload]
    print(f"\nA real pair through an untrained layer ({chosen['label']}):")
    print(f"  premise     {chosen['premise']}\n  hypothesis  {chosen['hypothesis']}\n")
    print(f"  {'token':<14}{'Shapley':>9}{'Banzhaf':>9}{'field':>9}{'attention':>11}")
    columns = (output.shapley, output.banzhaf, output.fields, output.attention)
    for place, token in enumerate(tokens):
        shapley, banzhaf, field, attention = (column[0, 0, place].item() for column in columns)
        bar = "#" * round(20 * attention)
        print(f"  {token:<14}{shapley:>9.4f}{banzhaf:>9.4f}{field:>9.3f}{attention:>11.3f}  {bar}")
    matrix = output.interactions.dense()[0, 0][: len(tokens), : len(tokens)]
    order = matrix.triu(1).flatten().abs().argsort(descending=True)[:3]
    print("\n  strongest interactions:")
    for position in order.tolist():
        i, j = divmod(position, len(tokens))
        kind = "synergy" if matrix[i, j] > 0 else "antagonism"
        print(f"    {tokens[i]} - {tokens[j]}: {matrix[i, j]:+.4f} ({kind})")
    diagnostics = output.diagnostics
    print(
        f"\n  {layer.eval_samples} coalitions, effective sample size {diagnostics.ess.item():.1f}; "
        f"mean field {'converged' if diagnostics.converged.item() else 'did not converge'} "
        f"in {diagnostics.steps.item()} steps, residual {diagnostics.residual.item():.1e}"
    )
