"""Methods of explanation compared on the same texts by the same metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from spinformer import checks
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split
from spinformer.evaluate.decisions import Decisions, decide
from spinformer.evaluate.faithfulness import (
    Better,
    Comprehensiveness,
    Cost,
    Metric,
    Stability,
    Sufficiency,
    Summary,
    defined,
)
from spinformer.models.masked import MaskedClassifier
from spinformer.progress import progress as bar

DRAWS = 10_000  # resamples of a bootstrap
BLOCK = 500  # of them at once


class Method(Protocol):
    """Scores of words towards the class that a classifier decides for."""

    @property
    def name(self) -> str:
        """How tables call it."""

    def __call__(self, words: Words) -> Tensor:
        """(B, W); what stands for padding does not matter."""


class Measure(Protocol):
    """What a metric declares."""

    @property
    def name(self) -> str:
        """How tables call it."""

    @property
    def better(self) -> Better:
        """Which way."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest value possible."""


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
        return dict(self.__dict__)


@dataclass(frozen=True)
class Spent:
    """Forward passes and milliseconds a text that a method took."""

    passes: float
    milliseconds: float


@dataclass(frozen=True)
class Table:
    """values[method][metric]: (N,), one value a text in the texts' order, NaN where not defined (float64, CPU).

    source: the texts; measures: what each metric declares, by name; spent: what each method took.
    """

    source: str
    measures: Mapping[str, Measure]
    values: Mapping[str, Mapping[str, Tensor]]
    spent: Mapping[str, Spent]

    def summary(self, method: str, metric: str) -> Summary:
        """Mean, standard error over texts, and count."""
        return Summary.of(self._values(method, metric))

    def difference(self, metric: str, first: str, second: str, *, draws: int = DRAWS, seed: int = 0) -> Difference:
        """How far method `first` is above `second`, by resampling the texts on which both have a value."""
        checks.at_least("draws", draws, 1)
        apart = self._values(first, metric) - self._values(second, metric)
        apart = apart[~apart.isnan()]
        count = len(apart)
        if count < 2:
            raise ValueError(f"{first} and {second} have {metric} on {count} texts in common; expected at least 2")
        generator = torch.Generator().manual_seed(seed)
        means = []
        for start in range(0, draws, BLOCK):
            chosen = torch.randint(count, (min(BLOCK, draws - start), count), generator=generator)
            means.append(apart[chosen].mean(1))
        low, high = torch.cat(means).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
        return Difference(float(apart.mean()), low, high, count, draws)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        measures = {
            name: {"better": one.better, "bounds": [defined(bound) for bound in one.bounds]}
            for name, one in self.measures.items()
        }
        methods = {
            method: {metric: self.summary(method, metric).to_dict() for metric in row}
            | {"passes": self.spent[method].passes, "milliseconds": self.spent[method].milliseconds}
            for method, row in self.values.items()
        }
        texts = len(next(iter(next(iter(self.values.values())).values())))
        return {"source": self.source, "texts": texts, "metrics": measures, "methods": methods}

    def __str__(self) -> str:
        lines = [["method", *(f"{name} ({one.better})" for name, one in self.measures.items()), "passes", "ms"]]
        for method, row in self.values.items():
            found = [self.summary(method, metric) for metric in row]
            spent = self.spent[method]
            cells = [f"{one.mean:.3f} ± {one.stderr:.3f} (n = {one.count})" if one.count else "-" for one in found]
            lines.append([method, *cells, f"{spent.passes:.1f}", f"{spent.milliseconds:.1f}"])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = (zip(line, widths, strict=True) for line in lines)
        return "\n".join("  ".join(f"{cell:{width}}" for cell, width in line).rstrip() for line in padded)

    def _values(self, method: str, metric: str) -> Tensor:
        checks.choice("method", method, tuple(self.values))
        checks.choice("metric", metric, tuple(self.measures))
        return self.values[method][metric]


def compare(
    methods: Sequence[Method],
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

    metrics: comprehensiveness and sufficiency where not given. seeds: with two or more, `Stability` over them too, for
    methods that have `seeded(seed)`, which gives the same method with that seed (a method that has `seed` is not asked
    again for that one); for others it is not defined. chunk:
    texts at a time, those of like length together. The cost is of the scores alone, not of the metrics, and its
    passes are those made through `classifier` itself.
    """
    metrics = (Comprehensiveness(), Sufficiency()) if metrics is None else tuple(metrics)
    measures: dict[str, Measure] = {one.name: one for one in metrics}
    stable = Stability() if seeds else None
    if stable is not None:
        measures[stable.name] = stable
    named = [one.name for one in metrics] + ([stable.name] if stable is not None else [])
    _check([one.name for one in methods], named, seeds)
    checks.at_least("chunk", chunk, 1)
    if not len(texts):
        raise ValueError(f"{texts.source} has no rows to explain")
    values = {one.name: {name: torch.full((len(texts),), torch.nan).double() for name in measures} for one in methods}
    costs = {one.name: Cost(classifier) for one in methods}
    order = sorted(
        range(len(texts)), key=texts.lengths.__getitem__, reverse=True
    )  # longest first: memory runs out at once
    chunks = [order[start : start + chunk] for start in range(0, len(order), chunk)]
    for rows in bar(chunks, texts.source) if progress else chunks:
        decisions = decide(classifier, split(classifier.tokenizer, texts.select(rows), max_length), rows)
        for method in methods:
            with costs[method.name]:
                scores = method(decisions.words)
            for metric in metrics:
                values[method.name][metric.name][rows] = metric(decisions, scores)
            if stable is not None:
                values[method.name][stable.name][rows] = _stability(stable, method, scores, decisions, seeds)
    spent = {name: Spent(cost.passes / len(texts), cost.milliseconds / len(texts)) for name, cost in costs.items()}
    return Table(texts.source, measures, values, spent)


def _stability(stable: Stability, method: Method, scores: Tensor, decisions: Decisions, seeds: Sequence[int]) -> Tensor:
    """scores: the method's own, which are those of its seed."""
    seeded, own = getattr(method, "seeded", None), getattr(method, "seed", None)
    if seeded is None:
        return torch.full((len(decisions),), torch.nan).double()
    return stable(decisions, [scores if seed == own else seeded(seed)(decisions.words) for seed in seeds])


def _check(methods: Sequence[str], metrics: Sequence[str], seeds: Sequence[int]) -> None:
    for kind, names in (("methods", methods), ("metrics", metrics)):
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"{kind} must be at least one, each with a name of its own; got {', '.join(names) or 'none'}"
            )
    if seeds and len(set(seeds)) < max(2, len(seeds)):
        raise ValueError(f"seeds must be none, or at least 2 that differ; got {tuple(seeds)}")
