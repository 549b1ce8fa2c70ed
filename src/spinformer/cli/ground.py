"""Give a classifier that you already have a game: which words, and which pairs of words, decided, from one pass.

MODEL is any Hugging Face text classifier (a folder or a hub id), of one text or of pairs, with any number of classes;
its weights stay as they are. TEXTS is a file of texts like those it will see; labels are not needed and not read. The
game head is trained on what the classifier says of parts of them, and saved in OUTPUT/game (MODEL/game by default) with
a report of how faithful it came out on texts that were held out.
"""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import get_args

import torch

from spinformer.cli.evaluate import columns, words
from spinformer.models.grounding import Form, Scope
from spinformer.models.masked import Masking
from spinformer.training import ground as training


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    defaults = training.Grounding()
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("texts", metavar="TEXTS", help="a file, or a name such as snli:train; parts joined by +")
    parser.add_argument("--columns", type=words, help="of the file: TEXT or PREMISE,HYPOTHESIS (default: found)")
    parser.add_argument("--output", type=Path, help="folder for the head (default: that of the model)")
    parser.add_argument("--held-out", type=int, default=200, help="texts to measure on, not to train on (default 200)")
    parser.add_argument("--limit", type=int, help="use only so many texts")
    parser.add_argument("--resume", action="store_true", help="go on from where a stopped run was")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    kinds = {
        "draw": get_args(training.Draw),
        "masking": get_args(Masking),
        "form": get_args(Form),
        "scope": get_args(Scope),
    }
    for option in fields(training.Grounding):
        value, flag = getattr(defaults, option.name), "--" + option.name.replace("_", "-")
        if option.name == "layers":
            parser.add_argument(flag, type=int, nargs="+", default=(), help="hidden states to read (default: three)")
        elif option.name in kinds:
            parser.add_argument(flag, choices=kinds[option.name], default=value, help="default %(default)s")
        else:
            parser.add_argument(flag, type=type(value), default=value, help="default %(default)s")


def run(args: argparse.Namespace) -> int:
    """Train the head, measure it, and say how far it can be trusted."""
    from spinformer.data.named import load_texts
    from spinformer.evaluate.grounding import report
    from spinformer.explain.grounded import Grounded
    from spinformer.models.load import load_classifier

    output = args.output or Path(args.model)
    if args.output is None and not output.is_dir():
        raise ValueError(f"{args.model} is not a folder here; name one for the head with --output")
    texts = load_texts(args.texts, **columns(args.columns, labelled=False))
    order = torch.randperm(len(texts), generator=torch.Generator().manual_seed(args.seed)).tolist()
    order = order if args.limit is None else order[: args.limit]
    if not 1 <= args.held_out < len(order):
        raise ValueError(
            f"--held-out must be from 1 to {len(order) - 1}, below the number of texts; got {args.held_out}"
        )
    model, tokenizer = load_classifier(args.model, device=args.device)
    options = training.Grounding(
        **{option.name: getattr(args, option.name) for option in fields(training.Grounding) if option.name != "layers"},
        layers=tuple(args.layers),
    )
    kept, seen = texts.select(order[: args.held_out]), texts.select(order[args.held_out :])
    head = training.ground(model, tokenizer, seen, output, options, resume=args.resume)
    found = report(Grounded(model, head), tokenizer, kept, max_length=args.max_length)
    found.save(output)
    print(found)
    print(f"\nthe game lies in {output / 'game'}")
    return 0
