"""`spinformer evaluate --explanations --exact COUNT`: explanations against exact values of short texts."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from spinformer._base import checks
from spinformer._base.extras import require
from spinformer.cli.options import check_output_file
from spinformer.data.texts import Texts
from spinformer.evaluate.explanations.exactness import (
    Exactness,
    Setting,
    forecast_exactness,
    measure_exactness,
)
from spinformer.evaluate.explanations.peers import BUDGETS, forecast_seconds, measure_peers
from spinformer.evaluate.explanations.tables import HIGH, LOW, choose, tabulate
from spinformer.explain.explainer import Explainer

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
    for text in args.exact_settings or ():
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


@dataclass(frozen=True)
class Plan:
    """What will be measured: the explainer with its default options, the texts, the settings, the peers' budgets."""

    explainer: Explainer
    texts: Texts
    settings: tuple[Setting, ...] | None
    tables: Path | None
    budgets: tuple[int, ...] | None
    seed: int

    @classmethod
    def of(cls, args: argparse.Namespace, explainer: Explainer, texts: Texts) -> "Plan":
        """As the options say; texts: those to choose from."""
        low, high = args.exact_words or (LOW, HIGH)
        seed, length = args.seeds[0], explainer.max_length
        chosen = choose(texts, explainer.tokenizer, args.exact, low, high, seed=seed, max_length=length)
        settings = None if args.exact_settings is None else tuple(map(Setting.parse, args.exact_settings))
        budgets = None if args.peers is None else tuple(args.peers) or BUDGETS
        return cls(explainer, chosen, settings, args.tables, budgets, seed)

    def forecast(self) -> str:
        """One line: how long it will take."""
        forecast = forecast_exactness(self.explainer, self.texts, self.tables, self.settings)
        if self.budgets is not None:
            forecast = replace(forecast, seconds=forecast.seconds + forecast_seconds(len(self.texts), self.budgets))
        return f"exactness on {len(self.texts)} texts: {forecast}"

    def measure(self) -> Exactness:
        """Tables, our methods, and the peers where they are asked for."""
        explainer = self.explainer
        tables = tabulate(explainer.classifier, self.texts, self.tables, max_length=explainer.max_length)
        result = measure_exactness(explainer, self.texts, tables, self.settings)
        if self.budgets is None:
            return result
        rows, absent = measure_peers(tables, self.budgets, seed=self.seed)
        return replace(result, peers=rows, absent=absent)


def draw(result: Exactness, path: Path) -> Path:
    """The picture of error against passes."""
    from spinformer.evaluate.explanations.figures import error_figure
    from spinformer.explain.render.canvas import save_figure

    return save_figure(error_figure([result.to_dict()]), path)
