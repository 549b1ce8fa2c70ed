"""Show what a classifier relies on over a whole data set, or where two classifiers differ.

EXPLAINED is what `spinformer explain MODEL FILE --output EXPLAINED` wrote: a .jsonl, .csv or .parquet of rows, or a
folder of JSON files. No model is needed.

One classifier:   spinformer overview explained.parquet --html page.html
By a column:      spinformer overview explained.parquet --html page.html --cohorts texts.csv country
Two classifiers:  spinformer overview mine.parquet theirs.parquet --names mine theirs --html differences.html
With two, explain both for the same class (--target CLASS), so that values can be compared on all texts.
"""

import argparse
from pathlib import Path
from typing import get_args

from spinformer._base.progress import remark
from spinformer.cli.options import check_output_file, check_output_folder


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("explained", metavar="EXPLAINED", type=Path, help="explanations of texts")
    add("second", metavar="SECOND", type=Path, nargs="?", help="explanations of the same texts by another classifier")
    add("--html", type=Path, metavar="PATH", help="write the page as one HTML file that needs no other file")
    add("--figures", type=Path, metavar="FOLDER", help="draw PNGs of words, pairs and classes (extra plot)")
    add(
        "--cohorts",
        nargs=2,
        metavar=("FILE", "COLUMN"),
        help="show groups of texts side by side: those with the same value in a column of a file, whose rows are the "
        "texts in the order of EXPLAINED",
    )
    add("--names", nargs=2, metavar=("NAME", "NAME"), help="of the two classifiers (default: those of the files)")


def run(args: argparse.Namespace) -> int:
    """Print the overview, and write the files asked for."""
    from spinformer._base.extras import require
    from spinformer.explain.explanation_set import ExplanationSet, SetPlot
    from spinformer.explain.set_difference import DifferenceKind

    if args.html is not None and args.html.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--html must name a file that ends in .html; got {args.html}")
    check_output_file("--html", args.html)
    check_output_folder("--figures", args.figures)
    if args.second is None and args.names is not None:
        raise ValueError("--names are those of two classifiers; got one file of explanations")
    if args.second is not None and args.cohorts is not None:
        raise ValueError("--cohorts are for the explanations of one classifier; got two files of explanations")
    if args.figures is not None:
        require("matplotlib", extra="plot")
    explained = ExplanationSet.load(args.explained)
    if args.second is None:
        cohorts = None if args.cohorts is None else _column(*args.cohorts)
        print(explained)
        if args.html is not None:
            explained.to_html(args.html, cohorts=cohorts)
        for kind in get_args(SetPlot) if args.figures is not None else ():
            explained.plot(kind, args.figures / f"{kind}.png")
    else:
        one, other = args.names or (args.explained.stem, args.second.stem)
        difference = explained.compare(ExplanationSet.load(args.second), (one, other))
        print(difference)
        if args.html is not None:
            difference.to_html(args.html)
        for kind in get_args(DifferenceKind) if args.figures is not None else ():
            difference.plot(kind, args.figures / f"{kind}.png")
    for name, path in (("page", args.html), ("figures", args.figures)):
        if path is not None:
            remark(f"{name}: {path}")
    return 0


def _column(path: str, name: str) -> list[str]:
    from spinformer.data.files import read_rows

    return [str(cells[0]) for _, cells in read_rows(path, [name])]
