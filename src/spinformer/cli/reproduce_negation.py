"""The sign of the interaction of "not", or of "very", with the word that it bears on: docs/explanations-negation.md.

MODEL is a folder with a classifier of sentence pairs and its game; FILE is MoNLI. Of each set of texts the game is
asked for all, and the classifier itself, by masking, for --real of them, evenly spread.
"""

import argparse
from pathlib import Path

import torch

from spinformer import results


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--model", required=True, help="folder of a classifier with a game")
    parser.add_argument("--monli", required=True, help="file of MoNLI")
    parser.add_argument("--real", type=int, default=50, help="texts of each set to mask (default %(default)s)")
    parser.add_argument("--samples", type=int, default=256, help="contexts a text in the game (default %(default)s)")
    parser.add_argument("--real-samples", type=int, default=64, help="contexts a text by masking (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the contexts (default %(default)s)")
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder for the JSON (default results)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def run(args: argparse.Namespace) -> int:
    """Measure every set and write results/negation.json."""
    from spinformer import checks
    from spinformer.data.named import load_texts
    from spinformer.experiments import negation
    from spinformer.explain.grounded import Grounded
    from spinformer.models.load import load_classifier

    checks.at_least("--real", args.real, 2)
    texts = load_texts(args.monli, labelled=False)
    cases = {**negation.own_cases(), **negation.monli_cases(texts)}
    model, tokenizer = load_classifier(args.model, device=args.device)
    grounded = Grounded.load(Path(args.model), model)
    found = negation.study(
        grounded, tokenizer, cases, real=args.real, samples=args.samples, real_samples=args.real_samples, seed=args.seed
    )
    path = results.write(
        "negation",
        found,
        command="spinformer reproduce negation --model MODEL --monli FILE",
        config={name: getattr(args, name) for name in ("real", "samples", "real_samples", "seed")},
        data={**dict(texts.digests), "model.safetensors": results.sha256(Path(args.model) / "model.safetensors")},
        directory=args.results,
    )
    for name, row in found["sets"].items():
        head, real = row["head"], row["real"]
        print(
            f"{name:<20} game {head['negative']:>4} - {head['positive']:>4} +  (p {head['p']:.2g})   "
            f"masked {real['negative']:>3} - {real['positive']:>3} +  (p {real['p']:.2g})   "
            f"same sign {row['agreement']['same_sign']} of {row['agreement']['texts']}"
        )
    print(path)
    return 0
