"""What `spinformer evaluate --explanations --exact COUNT` measures: it is planned and told first, then done."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from spinformer._base.choices import BUDGETS, HIGH, LOW
from spinformer.data.texts import Texts
from spinformer.evaluate.explanations.exactness import (
    Exactness,
    Setting,
    forecast_exactness,
    measure_exactness,
)
from spinformer.evaluate.explanations.peers import forecast_seconds, measure_peers
from spinformer.evaluate.explanations.tables import choose, tabulate
from spinformer.explain.explainer import Explainer


@dataclass(frozen=True)
class ExactnessPlan:
    """What will be measured: the explainer with its default options, the texts, the settings, the peers' budgets."""

    explainer: Explainer
    texts: Texts
    settings: tuple[Setting, ...] | None
    tables: Path | None
    budgets: tuple[int, ...] | None
    seed: int

    @classmethod
    def of(cls, args: argparse.Namespace, explainer: Explainer, texts: Texts) -> "ExactnessPlan":
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
