"""Count the signs of the interaction of "not", or "very", with the word after it: docs/explanations-negation.md.

The game of the classifier is measured on all texts of each set; the classifier itself, by masking, on --real of them,
evenly spread.
"""

import argparse
from pathlib import Path

from research.commands.options import add_results
from spinformer._base import records
from spinformer._base.files import sha256
from spinformer.cli.options import add_device


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--model", required=True, help="folder of a classifier of sentence pairs with a game")
    parser.add_argument("--monli", required=True, help="file of MoNLI")
    parser.add_argument("--real", type=int, default=50, help="texts of each set to mask (default %(default)s)")
    parser.add_argument(
        "--samples", type=int, default=256, help="contexts for each text, in the game (default %(default)s)"
    )
    parser.add_argument(
        "--real-samples", type=int, default=64, help="contexts for each text, by masking (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the contexts (default %(default)s)")
    add_results(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Measure every set and write the result `negation`."""
    from research.experiments import negation
    from research.experiments.games import load_game
    from spinformer._base import checks
    from spinformer.data.sources import load_texts
    from spinformer.models.loading import load_classifier

    checks.at_least("--real", args.real, 2)
    texts = load_texts(args.monli, labelled=False)
    cases = {**negation.negation_cases(), **negation.monli_cases(texts)}
    model, tokenizer = load_classifier(args.model, device=args.device)
    grounded = load_game(model, Path(args.model))
    outcome = negation.study(
        grounded, tokenizer, cases, real=args.real, samples=args.samples, real_samples=args.real_samples, seed=args.seed
    )
    path = records.write(
        "negation",
        outcome,
        command="spinformer reproduce negation --model MODEL --monli FILE",
        config={name: getattr(args, name) for name in ("real", "samples", "real_samples", "seed")},
        data={**dict(texts.digests), "model.safetensors": sha256(Path(args.model) / "model.safetensors")},
        directory=args.results,
    )
    for name, row in outcome["sets"].items():
        game, masked = row["head"], row["real"]
        print(
            f"{name:<20} game {game['negative']:>4} - {game['positive']:>4} +  (p {game['p']:.2g})   "
            f"masked {masked['negative']:>3} - {masked['positive']:>3} +  (p {masked['p']:.2g})   "
            f"same sign {row['agreement']['same_sign']} of {row['agreement']['texts']}"
        )
    print(path)
    return 0
