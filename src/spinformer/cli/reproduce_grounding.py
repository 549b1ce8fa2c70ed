"""Measure grounded games beside every other method of explanation: docs/grounding.md.

Stages:
  forms     one form of the game head after another, on development texts; results/grounding-forms.json
  frozen    the head on a frozen classifier, several seeds, all methods, on test texts; results/NAME.json
  together  a classifier trained with objective `grounded`, measured in the same way; results/NAME.json
Each stage can be run for any classifier: a second task is another MODEL and other files.
"""

import argparse
from pathlib import Path

import torch

from spinformer import results
from spinformer.training.ground import Grounding

STAGES = ("forms", "frozen", "together")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--stage", choices=STAGES, required=True)
    parser.add_argument("--model", nargs="+", required=True, help="folder of a classifier; for `together`, one a seed")
    parser.add_argument("--texts", help="file of texts to ground on (forms, frozen)")
    parser.add_argument("--test", required=True, help="file of texts to measure on")
    parser.add_argument("--highlights", type=Path, help="file of human highlights (e-SNLI)")
    parser.add_argument("--first", help="column of the only text, where the files have pairs and the model takes one")
    parser.add_argument("--count", type=int, default=1000, help="texts to measure on, the first ones (default 1000)")
    parser.add_argument("--limit", type=int, help="texts to ground on, the first ones (default all)")
    parser.add_argument("--seeds", type=int, default=3, help="of `frozen` (default 3)")
    parser.add_argument("--epochs", type=int, default=1, help="of grounding (default 1)")
    parser.add_argument("--batch-size", type=int, default=128, help="of grounding (default 128)")
    parser.add_argument("--subsets", type=int, default=4, help="masked passes a text and epoch (default 4)")
    parser.add_argument("--name", help="of the result (default grounding-STAGE)")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/grounding"), help="folder for heads (default %(default)s)"
    )
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="folder for the JSON (default results)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def run(args: argparse.Namespace) -> int:
    """Run one stage."""
    from spinformer.data.highlights import read_highlights
    from spinformer.data.named import load_texts
    from spinformer.experiments import grounding
    from spinformer.explain.grounded import Grounded
    from spinformer.models.load import load_classifier

    test = load_texts(args.test, first=args.first, labelled=False)
    test = test.select(range(min(args.count, len(test))))
    highlights = None if args.highlights is None else read_highlights(args.highlights)
    if args.stage != "together" and args.texts is None:
        raise ValueError(f"stage {args.stage} needs --texts, a file of texts to ground on")
    train = test if args.texts is None else load_texts(args.texts, first=args.first, labelled=False)
    if args.limit is not None:
        train = train.select(range(min(args.limit, len(train))))
    options = Grounding(epochs=args.epochs, batch_size=args.batch_size, subsets=args.subsets)
    found = []
    for place, folder in enumerate(args.model):
        model, tokenizer = load_classifier(folder, device=args.device)
        trial = grounding.Trial(model, tokenizer, train, test, highlights)
        if args.stage == "forms":
            found += [grounding.form(trial, name, options, args.runs / "forms") for name in grounding.FORMS]
        elif args.stage == "together":
            found.append({"seed": place, **grounding.measure(trial, Grounded.load(Path(folder), model))})
        else:
            for seed in range(args.seeds):
                trained = Grounding(**{**vars(options), "seed": seed})
                found.append({"seed": seed, **grounding.frozen(trial, trained, args.runs / f"frozen-{seed}")})
    path = results.write(
        args.name or f"grounding-{args.stage}",
        {"texts": len(train), "runs": found},
        command=f"spinformer reproduce grounding --stage {args.stage}",
        config={"stage": args.stage, "count": len(test), "texts": len(train), "seeds": args.seeds, **vars(options)},
        data=dict(train.digests + test.digests),
        directory=args.results,
    )
    print(f"{len(found)} runs; {path}")
    return 0
