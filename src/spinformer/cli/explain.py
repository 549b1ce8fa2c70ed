"""Which words, and which pairs of words, decided: from one forward pass of a classifier that has a game.

MODEL is a folder with a classifier and its game (`spinformer ground` makes one for any Hugging Face classifier). One
that has none is explained by masking words, with some hundred passes (extra `compare`).
Words that spoke for the decision are blue, those against it orange.
"""

import argparse
from pathlib import Path

import torch


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("premise", metavar="TEXT", help="the text, or the premise")
    parser.add_argument("hypothesis", metavar="SECOND", nargs="?", help="the hypothesis, for pairs")
    parser.add_argument("--output", type=Path, help="also save the explanation as JSON")
    parser.add_argument("--method", choices=("auto", "grounded", "masked"), default="auto", help="default %(default)s")
    parser.add_argument("--budget", type=int, default=512, help="masked passes, without a game (default %(default)s)")
    parser.add_argument("--samples", type=int, default=16, help="coalitions for the words' values (default 16)")
    parser.add_argument("--pair-samples", type=int, default=6, help="coalitions for the pairs' (default 6)")
    parser.add_argument("--temperature", type=float, default=0.25, help="gamma of the Ising model (default 0.25)")
    parser.add_argument("--top", type=int, default=5, help="words and pairs to list (default 5)")
    parser.add_argument("--max-length", type=int, default=128, help="tokens kept (default 128)")
    parser.add_argument("--seed", type=int, default=0, help="of the coalitions (default 0)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def run(args: argparse.Namespace) -> int:
    """Print the explanation."""
    from spinformer.explain import coloured, explain
    from spinformer.models.load import load_classifier

    model, tokenizer = load_classifier(args.model, device=args.device)
    found = explain(
        model,
        tokenizer,
        args.premise,
        args.hypothesis,
        method=args.method,
        budget=args.budget,
        samples=args.samples,
        pair_samples=args.pair_samples,
        temperature=args.temperature,
        max_length=args.max_length,
        seed=args.seed,
    )
    print(coloured(found))
    print(f"\n  {'word':<16}{'Shapley':>9}{'±':>8}{'Banzhaf':>9}{'attention':>11}")
    for word in found.top_words(args.top):
        numbers = f"{word.shapley:>+9.3f}{word.shapley_stderr:>8.3f}{word.banzhaf:>+9.3f}{word.attention or 0:>11.3f}"
        print(f"  {word.text:<16}{numbers}")
    print("\n  pairs")
    for one, other, value in found.top_pairs(args.top):
        print(f"  {one.text + ' - ' + other.text:<32}{value:>+9.3f}  {'synergy' if value > 0 else 'antagonism'}")
    if args.output is not None:
        print(f"\nsaved as {found.save(args.output)}")
    return 0
