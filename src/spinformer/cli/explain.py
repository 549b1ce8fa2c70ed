"""Show which words, and which pairs of words, decided.

MODEL is any Hugging Face sequence classifier. With a game, which `spinformer ground` learns, it is explained from one
forward pass; without a game, from 512 passes over masked texts (--passes). Without MODEL it is the one that the
environment variable SPINFORMER_MODEL names, or "small", a classifier of sentence pairs that is part of this package.
Blue words speak for the explained class, orange ones against it; without colours they are [+word] and [-word].

Try it:              spinformer explain "A man sleeps." "Nobody is awake."
One text or pair:    spinformer explain MODEL "A man sleeps." "Nobody is awake." --html one.html
Many, in one report: spinformer explain MODEL --file pairs.csv --html report.html --figures pictures
A corpus:            spinformer explain MODEL texts.jsonl --output explained.parquet --overview page.html
Plain lines:         spinformer explain MODEL reviews.txt --html report.html
A corpus is read from JSONL (.jsonl, .json), CSV, TSV, Parquet or plain lines (.txt: a text in each, or two with a tab
between), and written as JSONL, CSV or Parquet, a row for each text.
Stopped, it goes on when the same command is given again; torchrun and accelerate share it among processes.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from spinformer._base import checks
from spinformer._base.choices import FORMATS, PAIRS, PlayerKind
from spinformer._base.deferred import defer
from spinformer._base.progress import progress, remark
from spinformer.cli.collecting import is_own_process, no_collection
from spinformer.cli.explain_files import check_outputs, names_texts, take_file, write
from spinformer.cli.options import (
    MODEL_HELP,
    add_columns,
    add_device,
    add_max_length,
    aligned,
    check_pairs,
    method_summaries,
    takes_color,
    text_columns,
)

if TYPE_CHECKING:
    from spinformer.data.texts import Texts
    from spinformer.explain import Explainer, Explanation
    from spinformer.explain.inputs import CallOptions

REPORTED = 50  # texts of a file that go into a report
# Options of `Explainer` that are passed on where they are given.
MODEL_OPTIONS = ("game", "additive", "samples", "seconds", "temperature", "max_length", "seed")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    methods = method_summaries()
    automatic = {"auto": "shapley where the classifier has a game, kernel-shap where not (the default)"}
    parser.epilog = f"methods:\n{aligned(automatic | methods)}"
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help=f"{MODEL_HELP}; it may be left out")
    add("text", metavar="TEXT", nargs="?", help="the text, or the first of a pair")
    add("text_pair", metavar="SECOND", nargs="?", help="the second of a pair")
    add("--file", help="explain the texts or pairs of a file, or of a named set such as sample:test")
    add_columns(parser)
    add(
        "--limit",
        type=int,
        help=f"explain only the first LIMIT texts (default: {REPORTED} in a report, else all of them)",
    )
    add("--method", choices=("auto", *methods), default="auto", metavar="METHOD", help="one of the methods below")
    add("--target", metavar="CLASS", help="class to explain, by name or number (default: the predicted class)")
    add("--against", metavar="CLASS", help="explain why the class and not this one, by the difference of both")
    add(
        "--passes",
        type=int,
        default=0,
        metavar="N",
        help="masked passes for each text; they correct a game's values (default: 0 with a game, 512 for kernel-shap, "
        "200 for shapley-sampling)",
    )
    add(
        "--until",
        type=float,
        metavar="E",
        help="masked passes until no word is off by more than E (95%% sure)",
    )
    add(
        "--players",
        choices=get_args(PlayerKind),
        default="words",
        help="what is hidden and scored; hierarchical: the words of the strongest sentences of a long text, the others "
        "whole (default %(default)s)",
    )
    add("--html", type=Path, metavar="PATH", help="write a report as one HTML file that needs no other file")
    add(
        "--overview",
        type=Path,
        metavar="PATH",
        help="write a page on all texts of a file: what the classifier relies on",
    )
    add("--figures", type=Path, metavar="FOLDER", help="draw PNGs: words, bars, pairs, arcs and more (extra plot)")
    add(
        "--output",
        type=Path,
        help="save the explanation as JSON, of a file a folder of them; or rows, as .jsonl, .csv or .parquet",
    )
    add("--pairs", type=int, default=PAIRS, help="strongest pairs in each row (default %(default)s)")
    add("--game", type=Path, metavar="FOLDER", help="folder of the game, if it is not the model's own")
    add("--additive", type=Path, metavar="FOLDER", help="a saved additive explainer, for method additive-explainer")
    add("--samples", type=int, help="coalitions of the game behind its values (default: until their error is small)")
    add("--seconds", type=float, help="time that --until may take for a batch of texts (default: no limit)")
    add("--temperature", type=float, help="temperature gamma of the Ising model (default 0.25)")
    add("--top", type=int, default=5, help="number of words and of pairs to list (default %(default)s)")
    add_max_length(parser)
    add("--seed", type=int, default=0, help="random seed of the coalitions (default %(default)s)")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    """Print the explanations, and write the files asked for."""
    if is_own_process():
        defer()  # a BERT classifier is explained without transformers
    with no_collection():
        from spinformer._base.extras import require
        from spinformer.explain.render.number_table import number_table
        from spinformer.explain.render.text import colored_text

        _default_model(args)
    take_file(args)
    check_outputs(args)
    rows = args.output is not None and args.output.suffix.lower() in FORMATS
    if args.file is not None and (rows or args.overview is not None):
        return _run_corpus(args)
    texts = _texts(args, REPORTED)
    checks.at_least("--top", args.top, 1)
    if args.figures is not None:
        require("matplotlib", extra="plot")
    explanations, color = [], takes_color(sys.stdout)
    for explanation in _explain(args, texts):
        explanations.append(explanation)
        print(colored_text(explanation, color=color), flush=True)
        if args.file is None:
            print(f"\n{number_table(explanation, args.top, shutil.get_terminal_size().columns)}")
    write(args, explanations)
    return 0


def _texts(args: argparse.Namespace, limit: int | None = None) -> "Texts":
    """The text or pair, or those of the file: as many as --limit says, else as `limit` does."""
    from spinformer.data.sources import load_texts
    from spinformer.explain.inputs import as_texts

    if (args.text is None) == (args.file is None):
        got = "neither" if args.file is None else "both"
        raise ValueError(f"expected a TEXT, with or without a SECOND, or --file FILE; got {got}")
    if args.file is None:
        return as_texts(args.text, args.text_pair)
    texts = load_texts(args.file, **text_columns(args.columns, labelled=False))
    if not len(texts):
        raise ValueError(f"{args.file} has no texts")
    limit = limit if args.limit is None else args.limit
    if limit is not None:
        checks.at_least("--limit", limit, 1)
    if limit is None or len(texts) <= limit:
        return texts
    remark(f"the first {limit:,} of {len(texts):,} texts (--limit)")
    return texts.select(range(limit))


def _default_model(args: argparse.Namespace) -> None:
    """Where MODEL was left out, its place was taken by the first text: put all in their places.

    Of three, the first is MODEL. Otherwise it is a text if it cannot be the name of a model, or if it is a file of
    texts.
    """
    from spinformer.models.hub import may_be_model
    from spinformer.models.shipped import default_model

    first = args.model
    if first is not None and (args.text_pair is not None or (may_be_model(first) and not names_texts(first))):
        return
    args.text, args.text_pair = first, args.text
    args.model = default_model()


def _run_corpus(args: argparse.Namespace) -> int:
    """Explain the texts of a file: as rows in --output, as a page on all of them, or both."""
    from spinformer.explain.corpus import check_output, explain_corpus
    from spinformer.explain.explanation_set import ExplanationSet

    for name in ("html", "figures"):
        if getattr(args, name) is not None:
            raise ValueError(f"--{name} is for a few texts; a corpus goes to --output alone, or to --overview")
    if args.output is not None:
        check_output(args.output)
    texts = _texts(args)
    if args.output is None:
        explained = ExplanationSet(progress(_explain(args, texts), "explaining", len(texts)))
    else:
        explainer, options = _explainer(args, texts)
        path = explain_corpus(explainer, texts, args.output, pairs=args.pairs, **options)
        if path is None:
            return 0  # other processes are at work
        remark(f"{len(texts):,} explanations: {path}")
        if args.overview is None:
            return 0
        explained = ExplanationSet.load(path)
    print(explained)
    explained.to_html(args.overview)
    remark(f"page: {args.overview}")
    return 0


def _explain(args: argparse.Namespace, texts: "Texts") -> "Iterator[Explanation]":
    """The explanations of the texts, a batch at a time."""
    from spinformer.explain.batches import batch_size

    explainer, options = _explainer(args, texts)
    size = batch_size(explainer.classifier.device)
    for start in range(0, len(texts), size):
        part = slice(start, start + size)
        second = None if texts.second is None else list(texts.second[part])
        yield from explainer(list(texts.first[part]), second, **options)


def _explainer(args: argparse.Namespace, texts: "Texts") -> "tuple[Explainer, CallOptions]":
    """The explainer, and the options of its calls on these texts."""
    given = {name: getattr(args, name) for name in MODEL_OPTIONS if getattr(args, name) is not None}
    with no_collection():
        from spinformer.explain.explainer import Explainer
        from spinformer.models.plain.reading import read_classifier

        plain = None if args.method.startswith("layer") else read_classifier(args.model, args.device)
        if plain is None:
            explainer = Explainer.from_pretrained(args.model, args.device, **given)
        else:
            explainer = Explainer(*plain, **given)
    check_pairs(texts, explainer.context().labels)
    target = None if args.target is None else _class(args.target, explainer)
    against = None if args.against is None else _class(args.against, explainer)
    options: CallOptions = {"method": args.method, "passes": args.passes, "until": args.until}
    options |= {"target": target, "against": against, "players": args.players}
    return explainer, options


def _class(target: str, explainer: "Explainer") -> str | int:
    """The name of a class, or its number where no class has that name."""
    return int(target) if target.isdecimal() and target not in explainer.context().labels else target
