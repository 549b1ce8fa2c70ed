"""Explanation methods compared on the same texts by the same metrics."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from spinformer._base import checks
from spinformer._base.progress import progress as bar
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.evaluate.explanations.decisions import Decisions, decide
from spinformer.evaluate.explanations.faithfulness import Comprehensiveness, Cost, Stability, Sufficiency
from spinformer.evaluate.explanations.metric import CANNOT, LeftOut, Metric, Quantity, Summary, finite_or_none
from spinformer.explain.scoring import Scorer, SeededScorer
from spinformer.models.masked import MaskedClassifier

RESAMPLES = 10_000  # of a bootstrap
BLOCK = 500  # of them at once


@dataclass(frozen=True)
class Difference:
    """mean over texts of a - b, with the interval that holds the middle 95% of its means over resampled texts.

    count: texts on which both have a value; draws: resamples.
    """

    mean: float
    low: float
    high: float
    count: int
    draws: int

    def to_dict(self) -> dict[str, float | int]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class CostPerText:
    """Forward passes and milliseconds that a method took for one text, on average; NaN where it did none."""

    passes: float
    milliseconds: float

    def to_dict(self) -> dict[str, float | None]:
        """For JSON."""
        return {name: finite_or_none(number) for name, number in asdict(self).items()}


@dataclass(frozen=True)
class Table:
    """values[method][metric]: (N,), one value for each text in the texts' order, NaN where not defined (float64, CPU).

    source: the texts; metrics: what was measured, by name; costs: of each method, for the texts that it did; left_out:
    the texts that a method could not do, where there are any. They have NaN.
    """

    source: str
    metrics: Mapping[str, Quantity]
    values: Mapping[str, Mapping[str, Tensor]]
    costs: Mapping[str, CostPerText]
    left_out: Mapping[str, LeftOut] = field(default_factory=dict)

    def summary(self, method: str, metric: str) -> Summary:
        """Mean, standard error over texts, and count."""
        return Summary.of(self._values(method, metric))

    def difference(self, metric: str, first: str, second: str, *, draws: int = RESAMPLES, seed: int = 0) -> Difference:
        """By how much method `first` is above `second`, by resampling the texts on which both have a value."""
        checks.at_least("draws", draws, 1)
        differences = self._values(first, metric) - self._values(second, metric)
        differences = differences[~differences.isnan()]
        count = len(differences)
        if count < 2:
            raise ValueError(f"{first} and {second} have {metric} on {count} texts in common; expected at least 2")
        generator = torch.Generator().manual_seed(seed)
        means = []
        for start in range(0, draws, BLOCK):
            resampled = torch.randint(count, (min(BLOCK, draws - start), count), generator=generator)
            means.append(differences[resampled].mean(1))
        low, high = torch.cat(means).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
        return Difference(float(differences.mean()), low, high, count, draws)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        metrics = {
            name: {"better": metric.better, "bounds": [finite_or_none(bound) for bound in metric.bounds]}
            for name, metric in self.metrics.items()
        }
        methods = {
            method: {metric: self.summary(method, metric).to_dict() for metric in row}
            | self.costs[method].to_dict()
            | ({"left_out": self.left_out[method].to_dict()} if method in self.left_out else {})
            for method, row in self.values.items()
        }
        texts = len(next(iter(next(iter(self.values.values())).values())))
        return {"source": self.source, "texts": texts, "metrics": metrics, "methods": methods}

    def __str__(self) -> str:
        lines = [["method", *(f"{name} ({metric.better})" for name, metric in self.metrics.items()), "passes", "ms"]]
        for method, row in self.values.items():
            cost = self.costs[method]
            cells = [_cell(self.summary(method, metric)) for metric in row]
            numbers = (cost.passes, cost.milliseconds)
            lines.append([method, *cells, *("-" if math.isnan(one) else f"{one:.1f}" for one in numbers)])
        return "\n".join([columns(lines), *(f"{method}: {texts}" for method, texts in self.left_out.items())])

    def _values(self, method: str, metric: str) -> Tensor:
        checks.choice("method", method, tuple(self.values))
        checks.choice("metric", metric, tuple(self.metrics))
        return self.values[method][metric]


def compare(
    scorers: Sequence[Scorer],
    classifier: MaskedClassifier,
    texts: Texts,
    metrics: Sequence[Metric] | None = None,
    *,
    seeds: Sequence[int] = (),
    chunk: int = 32,
    max_length: int = 128,
    progress: bool = True,
) -> Table:
    """Every metric of every method's scores, text by text, and what each method cost.

    metrics: comprehensiveness and sufficiency where not given. seeds: with two or more, `Stability` over them too; it
    is defined for a `SeededScorer` only, whose scores are not computed again for the seed that it has. chunk: texts at
    a time, those of like length together. The cost is that of the scores, not of the metrics; its passes are those made
    through `classifier`. A text that a method cannot do has NaN for it.
    """
    checks.items("scorers", scorers, object)
    for scorer in scorers:
        if not callable(scorer) or not isinstance(getattr(scorer, "name", None), str):
            raise TypeError(f"scorers must be functions of words with a name; got {type(scorer).__name__}")
    checks.instance("classifier", classifier, MaskedClassifier)
    checks.instance("texts", texts, Texts)
    checks.items("seeds", seeds, int)
    if metrics is not None:
        checks.items("metrics", metrics, Metric)
    metrics = (Comprehensiveness(), Sufficiency()) if metrics is None else tuple(metrics)
    stability = Stability() if seeds else None
    quantities: list[Quantity] = [*metrics, *([] if stability is None else [stability])]
    _check([scorer.name for scorer in scorers], [quantity.name for quantity in quantities], seeds)
    checks.at_least("chunk", chunk, 1)
    if not len(texts):
        raise ValueError(f"{texts.source} has no rows to explain")
    by_name = {quantity.name: quantity for quantity in quantities}
    values = {
        scorer.name: {name: torch.full((len(texts),), torch.nan).double() for name in by_name} for scorer in scorers
    }
    costs = {scorer.name: Cost(classifier) for scorer in scorers}
    left_out: dict[str, LeftOut] = {}
    # Longest texts first, so that a lack of memory shows at once.
    order = sorted(range(len(texts)), key=texts.lengths.__getitem__, reverse=True)
    chunks = [order[start : start + chunk] for start in range(0, len(order), chunk)]
    for rows in bar(chunks, texts.source) if progress else chunks:
        decisions = decide(classifier, split_words(classifier.tokenizer, texts.select(rows), max_length), rows)
        for scorer in scorers:
            own = values[scorer.name]
            for part, outcome in _scored(scorer, decisions, costs[scorer.name], seeds):
                if isinstance(outcome, Exception):
                    left_out[scorer.name] = LeftOut.add(left_out.get(scorer.name), outcome)
                    continue
                where, (scores, by_seed) = list(part.rows), outcome
                for metric in metrics:
                    own[metric.name][where] = metric(part, scores)
                if stability is not None and by_seed:
                    own[stability.name][where] = stability(part, by_seed)
    means = {}
    for name, cost in costs.items():
        done = len(texts) - (left_out[name].count if name in left_out else 0)
        means[name] = CostPerText(*(part / done if done else math.nan for part in (cost.passes, cost.milliseconds)))
    return Table(texts.source, by_name, values, means, left_out)


def columns(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as a table with the columns below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = (zip(line, widths, strict=True) for line in lines)
    return "\n".join("  ".join(f"{cell:{width}}" for cell, width in line).rstrip() for line in padded)


def _scored(
    scorer: Scorer, decisions: Decisions, cost: Cost, seeds: Sequence[int]
) -> Iterator[tuple[Decisions, tuple[Tensor, list[Tensor]] | Exception]]:
    """The scores of a batch, and those of every seed where the method has seeds.

    Where the method cannot do the batch, each text alone, with the error for those that it cannot do.
    """
    outcome: tuple[Tensor, list[Tensor]] | Exception
    try:
        with cost:
            scores = decisions.check(f"scores of {scorer.name}", scorer(decisions.words))
        by_seed = []
        if seeds and isinstance(scorer, SeededScorer):
            by_seed = [scores if seed == scorer.seed else scorer.seeded(seed)(decisions.words) for seed in seeds]
        outcome = scores, by_seed
    except CANNOT as error:
        outcome = error
    if isinstance(outcome, Exception) and len(decisions) > 1:
        for one in decisions.apart:
            yield from _scored(scorer, one, cost, seeds)
    else:
        yield decisions, outcome


def _cell(summary: Summary) -> str:
    return f"{summary.mean:.3f} ± {summary.stderr:.3f} (n = {summary.count})" if summary.count else "-"


def _check(scorers: Sequence[str], metrics: Sequence[str], seeds: Sequence[int]) -> None:
    for kind, names in (("scorers", scorers), ("metrics", metrics)):
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"{kind} must be at least one, each with a name of its own; got {', '.join(names) or 'none'}"
            )
    if seeds and len(set(seeds)) < max(2, len(seeds)):
        raise ValueError(f"seeds must be none, or at least 2 that differ; got {tuple(seeds)}")
