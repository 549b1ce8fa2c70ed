"""Explanations of short texts against the exact values of the classifier, which enumerate every coalition of words."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from spinformer._base import checks
from spinformer._base.progress import progress as bar
from spinformer.data.texts import Texts
from spinformer.data.words import split_words
from spinformer.evaluate.explanations.closeness import HEADER, Closeness, ClosenessRow, ExactIndices, upper
from spinformer.evaluate.explanations.comparison import columns
from spinformer.evaluate.explanations.faithfulness import Cost
from spinformer.evaluate.explanations.forecast import Forecast, seconds_per_pass
from spinformer.evaluate.explanations.metric import CANNOT, LeftOut
from spinformer.evaluate.explanations.tables import ExactTable, TableFile, TabulatedClassifier, text_key
from spinformer.explain.explainer import Explainer
from spinformer.explain.explanation import Explanation
from spinformer.explain.methods import get_method
from spinformer.games.indices import INDICES

# Methods whose scores estimate an index of the classifier, by its name; those of the games' own indices say theirs.
ESTIMATED = {"shapley": "SV", "banzhaf": "BV", "kernel-shap": "SV", "shapley-sampling": "SV"}


@dataclass(frozen=True)
class Setting:
    """A method with the masked passes that it may spend on a text; 0 stands for the method's own number.

    until: passes are spent until, with 95% confidence, no word is off by more; None where no error is promised.
    """

    method: str
    passes: int = 0
    until: float | None = None

    def __post_init__(self) -> None:
        checks.instance("method", self.method, str)
        checks.at_least("passes", self.passes, 0)
        if self.until is not None:
            checks.positive("until", self.until)
        _ = self.index  # refuses methods without an exact counterpart

    @classmethod
    def parse(cls, text: str) -> "Setting":
        """METHOD, METHOD:PASSES or METHOD:until=ERROR."""
        checks.instance("text", text, str)
        method, _, spent = text.partition(":")
        try:
            if spent.startswith("until="):
                return cls(method, until=float(spent.removeprefix("until=")))
            if not spent or spent.isdecimal():
                return cls(method, int(spent or 0))
        except ValueError as error:
            raise ValueError(f"{text!r}: {error}") from None
        raise ValueError(f"expected METHOD, METHOD:PASSES or METHOD:until=ERROR, as shapley:64; got {text!r}")

    @property
    def index(self) -> str:
        """The index that the words' scores estimate."""
        known = ESTIMATED.get(self.method) or getattr(get_method(self.method), "index", None)
        if known not in INDICES:
            raise ValueError(f"method {self.method!r} has no exact values; expected one of {', '.join(ESTIMATED)}")
        return str(known)


GAME_SETTINGS = (
    *(Setting("shapley", passes) for passes in (0, 32, 64, 128, 256)),
    Setting("shapley", until=0.05),
    Setting("banzhaf"),
    Setting("kernel-shap", 200),
)
SETTINGS = tuple(Setting("kernel-shap", passes) for passes in (100, 200, 400))  # without a game


@dataclass(frozen=True)
class Exactness:
    """What `measure_exactness` finds, and what shapiq's estimators reach on the same texts where they were asked.

    source: the texts; texts: how many; words: the fewest and the most words of one; masking: how words were hidden;
    settings, peers: a row for each method and number of passes; absent: estimators that could not run, and why.
    """

    source: str
    texts: int
    words: tuple[int, int]
    masking: str
    settings: Sequence[ClosenessRow]
    peers: Sequence[ClosenessRow] = ()
    absent: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "source": self.source,
            "texts": self.texts,
            "words": list(self.words),
            "masking": self.masking,
            "settings": {row.name: row.to_dict() for row in self.settings},
            "peers": {row.name: row.to_dict() for row in self.peers},
            "absent": dict(self.absent),
        }

    def __str__(self) -> str:
        low, high = self.words
        rows = [*self.settings, *self.peers]
        return "\n".join(
            [
                f"against exact values of {self.texts} texts of {low} to {high} words: relative root mean square error",
                columns([HEADER, *(row.cells() for row in rows)]),
                *(f"{row.name}: {row.left_out}" for row in rows if row.left_out is not None),
                *(f"{name}: not measured: {reason}" for name, reason in self.absent.items()),
            ]
        )


def measure_exactness(
    explainer: Explainer,
    texts: Texts,
    tables: Sequence[ExactTable],
    settings: Sequence[Setting] | None = None,
    *,
    progress: bool = True,
) -> Exactness:
    """How close explanations come to the exact values, for each setting, from tables that `tabulate` made of `texts`.

    No masked pass is made: the tables answer. settings: by default GAME_SETTINGS, or SETTINGS without a game. A text
    that a method cannot do costs that method that text.
    """
    checks.instance("explainer", explainer, Explainer)
    checks.instance("texts", texts, Texts)
    checks.items("tables", tables, ExactTable)
    if settings is not None:
        checks.items("settings", settings, Setting)
    if len(tables) != len(texts) or not len(texts):
        raise ValueError(f"expected a table for each of at least 1 text; got {len(tables)} for {len(texts)}")
    words = split_words(explainer.tokenizer, texts, explainer.max_length)
    for number, table in enumerate(tables):
        if text_key(words, number) != table.key:
            raise ValueError(
                f"the table at {number} must be of text {number}; got that of {' '.join(table.words)!r:.60}"
            )
    if settings is None:
        settings = SETTINGS if explainer.grounded is None else GAME_SETTINGS
    rows = [ClosenessRow(setting.method, setting.passes, setting.index, until=setting.until) for setting in settings]
    if not rows or len({row.name for row in rows}) < len(rows):
        raise ValueError(f"settings must be at least one, all different; got {', '.join(row.name for row in rows)}")
    tabulated = copy.copy(explainer)
    tabulated.classifier = TabulatedClassifier(explainer.classifier, tables)
    numbers = range(len(texts))
    for number in bar(numbers, "exactness") if progress else numbers:
        exact = ExactIndices(tables[number])
        for setting, row in zip(settings, rows, strict=True):
            try:
                explanation = tabulated(
                    texts.first[number],
                    None if texts.second is None else texts.second[number],
                    method=setting.method,
                    passes=setting.passes,
                    until=setting.until,
                    target=exact.table.target,
                )
                _add(row, setting, explanation, exact)
            except CANNOT as error:
                row.left_out = LeftOut.add(row.left_out, error)
    counts = [len(table.words) for table in tables]
    limits = (min(counts), max(counts))
    return Exactness(texts.source, len(texts), limits, explainer.classifier.masking, rows)


def forecast_exactness(
    explainer: Explainer, texts: Texts, path: Path | None = None, settings: Sequence[Setting] | None = None
) -> Forecast:
    """What `tabulate` and `measure_exactness` will take: the passes that the file at `path` lacks, timed on a batch of
    them, and the settings, timed on the first text with made-up answers.
    """
    words = split_words(explainer.tokenizer, texts, explainer.max_length)
    passes = TableFile(path, explainer.classifier).missing(words)
    seconds = passes * seconds_per_pass(explainer.classifier, words) if passes else 0.0
    first, numbers = (
        texts.select([0]),
        torch.rand(2 ** int(words.counts[0]), generator=torch.Generator().manual_seed(0)),
    )
    classes = len(explainer.context().labels)
    full = (float(numbers[-1]), *[(1 - float(numbers[-1])) / (classes - 1)] * (classes - 1))
    made_up = ExactTable(text_key(words, 0), words.words[0], 0, full, numbers)
    with Cost(explainer.classifier) as cost:
        measure_exactness(explainer, first, [made_up], settings, progress=False)
    return Forecast(passes, seconds + cost.milliseconds / 1000 * len(texts))


def _add(row: ClosenessRow, setting: Setting, explanation: Explanation, exact: ExactIndices) -> None:
    """One explanation more in the row."""
    importance, stderr = torch.tensor(explanation.importance), torch.tensor(explanation.importance_stderr)
    words = Closeness.of(importance, exact[setting.index], stderr)
    if explanation.pair_index is not None and explanation.pairs:
        matrices = (explanation.interactions, explanation.interactions_stderr)
        interactions, errors = (upper(torch.tensor(matrix)) for matrix in matrices)
        row.pair_index = explanation.pair_index
        row.pairs.append(Closeness.of(interactions, exact[explanation.pair_index], errors))
    row.words.append(words)
    row.passes.append(explanation.passes)
    base = explanation.base_value
    if base is not None:
        row.base_errors.append(abs(base - exact.empty))
    if setting.index == "SV":
        shared = exact.gain if base is None else exact.gain + exact.empty - base
        row.gaps.append(abs(float(importance.double().sum()) - shared))
