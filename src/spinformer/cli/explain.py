"""Which words, and which pairs of words, decided: from one forward pass of a classifier that has a game.

MODEL is a folder with a classifier and its game (`spinformer ground` makes one for any Hugging Face classifier). One
that has none is explained by masking words, with some hundred passes (extra `compare`).
Words that spoke for the decision are blue, those against it orange.

One text or pair:    spinformer explain MODEL "A man sleeps." "Nobody is awake." --html one.html
Many, in one report: spinformer explain MODEL --file pairs.csv --html report.html --figures pictures
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import torch

from spinformer import checks
from spinformer.cli.evaluate import columns, words
from spinformer.progress import progress

if TYPE_CHECKING:
    from spinformer.explain import Explanation

# Texts explained at a time.
BATCH = 8


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("premise", metavar="TEXT", nargs="?", help="the text, or the premise")
    parser.add_argument("hypothesis", metavar="SECOND", nargs="?", help="the hypothesis, for pairs")
    parser.add_argument("--file", help="explain the texts or pairs of a file or named set instead, as sample:test")
    parser.add_argument("--columns", type=words, help="of the file: TEXT or PREMISE,HYPOTHESIS (default: found)")
    parser.add_argument("--limit", type=int, default=50, help="texts of the file, from its top (default %(default)s)")
    parser.add_argument("--html", type=Path, metavar="PATH", help="write a report that needs nothing else to be read")
    parser.add_argument(
        "--figures", type=Path, metavar="FOLDER", help="draw PNGs of words, pairs and arcs (extra plot)"
    )
    parser.add_argument("--output", type=Path, help="also save the explanation as JSON; with --file, a folder of them")
    parser.add_argument("--method", choices=("auto", "grounded", "masked"), default="auto", help="default %(default)s")
    parser.add_argument("--budget", type=int, default=512, help="masked passes, without a game (default %(default)s)")
    parser.add_argument("--game", type=Path, metavar="FOLDER", help="where the game lies, if not with the model")
    parser.add_argument("--samples", type=int, help="coalitions for the words' values (default 16)")
    parser.add_argument("--pair-samples", type=int, help="coalitions for the pairs' (default 4)")
    parser.add_argument("--temperature", type=float, help="gamma of the Ising model (default 0.25)")
    parser.add_argument("--top", type=int, default=5, help="words and pairs to list (default 5)")
    parser.add_argument("--max-length", type=int, default=128, help="tokens kept (default 128)")
    parser.add_argument("--seed", type=int, default=0, help="of the coalitions (default 0)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def run(args: argparse.Namespace) -> int:
    """Print the explanations, and write what was asked for."""
    first, second = _texts(args)
    if args.html is not None and args.html.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--html must name a file that ends in .html; got {args.html}")
    checks.at_least("--top", args.top, 1)
    if args.figures is not None:
        from spinformer.explain import pictures

        pictures.ready()
    from spinformer.explain import coloured

    found = []
    for explanation in _explained(args, first, second):
        found.append(explanation)
        print(coloured(explanation))
        if args.file is None:
            _print_numbers(explanation, args.top)
    _write(args, found)
    return 0


def _texts(args: argparse.Namespace) -> tuple[list[str], list[str] | None]:
    if (args.premise is None) == (args.file is None):
        got = "neither" if args.file is None else "both"
        raise ValueError(f"expected a TEXT, with or without a SECOND, or --file FILE; got {got}")
    if args.file is None:
        return [args.premise], None if args.hypothesis is None else [args.hypothesis]
    from spinformer.data.named import load_texts

    checks.at_least("--limit", args.limit, 1)
    texts = load_texts(args.file, **columns(args.columns, labelled=False))
    if not len(texts):
        raise ValueError(f"{args.file} has no texts")
    if len(texts) > args.limit:
        print(f"the first {args.limit:,} of {len(texts):,} texts (--limit)")
    second = None if texts.second is None else list(texts.second[: args.limit])
    return list(texts.first[: args.limit]), second


def _explained(args: argparse.Namespace, first: list[str], second: list[str] | None) -> "Iterator[Explanation]":
    from spinformer.explain import explain
    from spinformer.explain.grounded import Grounded
    from spinformer.models.load import load_classifier

    model, tokenizer = load_classifier(args.model, device=args.device)
    names = ("method", "budget", "samples", "pair_samples", "temperature", "max_length", "seed")
    options: dict[str, Any] = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    if args.game is not None:
        options["grounded"] = Grounded.load(args.game, model)
    starts = range(0, len(first), BATCH)
    for start in starts if len(first) <= BATCH else progress(starts, "explain"):
        part = slice(start, start + BATCH)
        yield from explain(model, tokenizer, first[part], None if second is None else second[part], **options)


def _print_numbers(found: "Explanation", top: int) -> None:
    print(f"\n  {'word':<16}{'Shapley':>9}{'±':>8}{'Banzhaf':>9}{'attention':>11}")
    for word in found.top_words(top):
        numbers = f"{word.shapley:>+9.3f}{word.shapley_stderr:>8.3f}{word.banzhaf:>+9.3f}{word.attention or 0:>11.3f}"
        print(f"  {word.text:<16}{numbers}")
    print("\n  pairs")
    for one, other, value in found.top_pairs(top):
        print(f"  {one.text + ' - ' + other.text:<32}{value:>+9.3f}  {'synergy' if value > 0 else 'antagonism'}")


def _write(args: argparse.Namespace, found: "list[Explanation]") -> None:
    names = ["explanation"] if args.file is None else [f"{place:04d}" for place in range(1, len(found) + 1)]
    if args.output is not None and args.file is None:
        print(f"\nsaved as {found[0].save(args.output)}")
    elif args.output is not None:
        args.output.mkdir(parents=True, exist_ok=True)
        for name, explanation in zip(names, found, strict=True):
            explanation.save(args.output / f"{name}.json")
        print(f"\nsaved in {args.output}")
    if args.html is not None:
        from spinformer.explain.html import save_html

        print(f"report: {save_html(found, args.html)}")
    if args.figures is not None:
        from spinformer.explain.explanation import PlotKind

        args.figures.mkdir(parents=True, exist_ok=True)
        every = list(zip(names, found, strict=True))
        for name, explanation in every if len(every) == 1 else progress(every, "draw"):
            for kind in get_args(PlotKind):
                explanation.plot(kind, args.figures / f"{name}-{kind}.png")
        print(f"pictures: {args.figures}")
