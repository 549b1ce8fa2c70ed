"""`spinformer evaluate --explanations --exact COUNT`: explanations against exact values of short texts."""

import argparse
from pathlib import Path

from spinformer._base import checks
from spinformer._base.choices import BUDGETS, HIGH, LOW
from spinformer._base.extras import require
from spinformer.cli.options import check_output_file

OPTIONS = ("exact", "exact_words", "exact_settings", "tables", "peers", "exact_figure")
DESCRIPTION = f"""\
Values of words and pairs against the exact ones of the classifier, which take all 2^n masked passes of a text of n
words: error, correlation, coverage of 95% intervals, whether Shapley values add up, and on how many texts the error
that `until` promises was kept. The texts are drawn at random among those of DATA that have {LOW} to {HIGH} words. The
number of passes and the time are told before the work begins.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the group."""
    add = parser.add_argument_group("exactness (with --explanations)", DESCRIPTION).add_argument
    add("--exact", type=int, metavar="COUNT", help="texts to compare with exact values on (default 0, none)")
    add("--exact-words", type=int, nargs=2, metavar=("LOW", "HIGH"), help=f"words of a text (default {LOW} {HIGH})")
    add(
        "--exact-settings",
        nargs="+",
        metavar="METHOD:PASSES",
        help="methods with their passes, or METHOD:until=ERROR with the error that no word may exceed (default: shapley"
        " with 0 to 256 and until=0.05, banzhaf, kernel-shap with 200)",
    )
    add("--tables", type=Path, metavar="FILE", help="keep the exact tables here; a stopped run goes on from them")
    add(
        "--peers",
        type=int,
        nargs="*",
        metavar="BUDGET",
        help=f"measure shapiq's estimators too (extra `compare`; default {' '.join(map(str, BUDGETS))} passes)",
    )
    add("--exact-figure", type=Path, metavar="FILE", help="draw error against passes as .png or .svg (extra `plot`)")


def check(args: argparse.Namespace) -> None:
    """Refuse what is wrong before any work."""
    if args.exact is None or args.exact == 0:
        given = [name for name in OPTIONS[1:] if getattr(args, name) is not None]
        if given:
            raise ValueError(f"--{given[0].replace('_', '-')} needs --exact COUNT, the number of texts")
        return
    checks.at_least("--exact", args.exact, 0)
    if args.exact_settings is not None:
        from spinformer.evaluate.explanations.exactness import Setting

        for text in args.exact_settings:
            Setting.parse(text)
    for budget in args.peers or ():
        checks.at_least("--peers", budget, 2)
    if args.peers is not None:
        require("shapiq", extra="compare")
    if args.exact_figure is not None:
        from spinformer.explain.render.canvas import SUFFIXES, check_matplotlib

        check_matplotlib()
        checks.choice("the suffix of --exact-figure", args.exact_figure.suffix.lower(), SUFFIXES)
    check_output_file("--tables", args.tables)
    check_output_file("--exact-figure", args.exact_figure)
