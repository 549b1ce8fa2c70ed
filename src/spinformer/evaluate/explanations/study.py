"""Every measurement of a classifier's explanations on the same texts: how faithful, how stable, at what cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from spinformer._base import checks
from spinformer._base.progress import progress
from spinformer.data.highlights import Highlights
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.evaluate.explanations.comparison import Table, compare
from spinformer.evaluate.explanations.decisions import Decisions, decide
from spinformer.evaluate.explanations.faithfulness import Comprehensiveness, Cost, LeaveOneOutCorrelation, Sufficiency
from spinformer.evaluate.explanations.forecast import Forecast, few, seconds_per_pass
from spinformer.evaluate.explanations.game_fit import MAX_WORDS, Agreement, Fit, GameFit, InteractionAgreement
from spinformer.evaluate.explanations.highlights import HighlightAgreement
from spinformer.evaluate.explanations.metric import Metric
from spinformer.explain.explainer import Explainer
from spinformer.explain.grounded import ANNEALED, GroundedClassifier
from spinformer.explain.scoring import Scorer, SeededScorer
from spinformer.games import Game

STABILITY_TEXTS = 100  # the first texts, on which stability over seeds and the Ising model are measured
GIBBS_WORDS = 64  # of the longest text whose pairs are weighted by Gibbs: time grows with the cube of the words
SHORT_TEXTS = 12  # texts for the exact interactions, which cost 2^W passes each
MIN_WORDS = 4  # of such a text: fewer words have too few pairs to correlate
CHUNK = 32  # texts at a time
COALITIONS = 32  # of each text, for the fit
REFERENCE = "shapley"  # the method that all others are compared with

# One comparison: methods, texts, metrics, and seeds for the stability.
Part = tuple[Sequence[Scorer], Texts, Sequence[Metric], Sequence[int]]


@dataclass(frozen=True)
class StudyResult:
    """What `Study.measure` finds.

    table: comprehensiveness, sufficiency, correlation with leave-one-out and cost of every method; stability: over
    seeds; highlights: agreement with the words that people marked, on their texts. Where the classifier has a game,
    fit: of v(C); interactions: agreement with the exact ones on short texts, None where no text is short; diagnostics:
    of its Ising model.
    """

    table: Table
    stability: Table | None = None
    highlights: Table | None = None
    fit: Fit | None = None
    interactions: Agreement | None = None
    diagnostics: dict[str, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        parts = {
            "stability": self.stability,
            "fit": self.fit,
            "interactions": self.interactions,
            "highlights": self.highlights,
        }
        return {
            "faithfulness": self.table.to_dict(),
            "differences": differences(self.table),
            **{name: part.to_dict() for name, part in parts.items() if part is not None},
            **({} if self.diagnostics is None else {"diagnostics": self.diagnostics}),
        }

    def __str__(self) -> str:
        lines = [str(self.table)]
        if self.stability is not None:
            lines.append(f"\n{self.stability}")
        if self.fit is not None:
            texts, coalitions = self.fit.real.shape
            lines.append(
                f"\nfit of v(C): R squared {self.fit.pooled:.3f}, about the mean of each text {self.fit.within:.3f}; "
                f"{texts} texts, {coalitions} coalitions of each"
            )
        if self.interactions is not None:
            lines.append(
                f"interactions against the exact ones: Spearman {self.interactions.pooled('spearman'):.3f}, "
                f"Pearson {self.interactions.pooled('pearson'):.3f}; {sum(map(len, self.interactions.real))} pairs, "
                f"{len(self.interactions.real)} texts of {MIN_WORDS} to {MAX_WORDS} words"
            )
        elif self.fit is not None:
            lines.append(f"interactions: not measured, since no text has {MIN_WORDS} to {MAX_WORDS} words")
        if self.diagnostics is not None:
            lines.append(f"mean field: {self.diagnostics['converged']:.1%} converged")
        if self.highlights is not None:
            lines.append(f"\n{self.highlights}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Study:
    """A classifier, with its game if it has one, and the texts that its explanations are measured on.

    `Study(explainer, texts).measure([explainer.scorer(name) for name in explainer.methods()])` measures everything.
    """

    explainer: Explainer
    texts: Texts

    def __post_init__(self) -> None:
        checks.instance("explainer", self.explainer, Explainer)
        checks.instance("texts", self.texts, Texts)
        if not len(self.texts):
            raise ValueError(f"{self.texts.source} has no rows to measure explanations on")

    def measure(
        self,
        scorers: Sequence[Scorer],
        *,
        seeds: Sequence[int] = (0, 1, 2),
        highlights: Highlights | None = None,
        highlight_scorers: Sequence[Scorer] | None = None,
    ) -> StudyResult:
        """Everything in `StudyResult`.

        seeds: for the stability, none or at least 2. highlight_scorers: the methods that are compared with the
        highlights, by default all.
        """
        parts = self._parts(scorers, seeds, highlights, highlight_scorers)
        table, stability, human = (None if part is None else self._compare(*part) for part in parts)
        assert table is not None
        if self.explainer.grounded is None:
            return StudyResult(table, stability, human)
        spins = self.diagnostics(STABILITY_TEXTS, gibbs=False)
        return StudyResult(table, stability, human, self.fit(), self.interactions(), spins)

    def forecast(
        self,
        scorers: Sequence[Scorer],
        *,
        seeds: Sequence[int] = (0, 1, 2),
        highlights: Highlights | None = None,
        highlight_scorers: Sequence[Scorer] | None = None,
    ) -> Forecast:
        """What `measure` will take with the same arguments, from what it takes on a few of the texts."""
        classifier, total = self.explainer.classifier, Forecast()
        classifier.full_probabilities(self._words([0]))  # the first pass is slower than all others
        sample = Study(self.explainer, self.texts.select(few(self.texts)))
        marked = None if highlights is None else highlights.select(few(highlights.texts))
        whole = self._parts(scorers, seeds, highlights, highlight_scorers)
        for part, small in zip(whole, sample._parts(scorers, seeds, marked, highlight_scorers), strict=True):
            if part is not None and small is not None:
                with Cost(classifier) as cost:
                    self._compare(*small, progress=False)
                total += Forecast.of(cost, len(part[1]) / len(small[1]))
        if self.explainer.grounded is not None:
            counts = [int(self._words([row]).counts) for row in self._short_texts()]
            passes = len(self.texts) * (COALITIONS + 3) + sum(2**count + 2 for count in counts)
            total += Forecast(passes, passes * seconds_per_pass(classifier, self._words([0])))
            with Cost(classifier) as cost:
                sample.diagnostics(gibbs=False)
            spins = Forecast.of(cost, min(STABILITY_TEXTS, len(self.texts)) / len(sample.texts))
            total += replace(spins, passes=0)  # counted above
        return total

    def _parts(
        self,
        scorers: Sequence[Scorer],
        seeds: Sequence[int],
        highlights: Highlights | None,
        highlight_scorers: Sequence[Scorer] | None,
    ) -> "list[Part | None]":
        """The comparisons to make: faithfulness, stability over seeds, highlights; None for those not asked for."""
        metrics = [Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()]
        parts: list[Part | None] = [(scorers, self.texts, metrics, ()), None, None]
        seeded = [scorer for scorer in scorers if isinstance(scorer, SeededScorer)]
        if seeds and seeded:
            parts[1] = (seeded, self.texts.select(range(min(STABILITY_TEXTS, len(self.texts)))), (), seeds)
        if highlights is not None:
            chosen = scorers if highlight_scorers is None else highlight_scorers
            parts[2] = (chosen, highlights.texts, [HighlightAgreement(highlights)], ())
        return parts

    def fit(self, coalitions: int = COALITIONS, chunk: int = CHUNK) -> Fit:
        """R squared of v(C) on the texts, at random coalitions of each."""
        checks.at_least("chunk", chunk, 1)
        metric = GameFit(coalitions)
        return Fit.join([metric(*part) for part in self._games(_chunks(len(self.texts), chunk), "fit")])

    def interactions(self) -> Agreement | None:
        """The interactions of the game against the exact ones of the classifier, on the first short texts."""
        metric = InteractionAgreement()
        short = [[row] for row in self._short_texts()]
        return Agreement.join([metric(*part) for part in self._games(short, "interactions")]) if short else None

    def diagnostics(self, texts: int | None = None, *, gibbs: bool = True) -> dict[str, float]:
        """Of the first so many texts, by default all: the share of mean fields that converged.

        gibbs: also the effective sample size under Gibbs weights as a share of the coalitions (with the uniform weights
        of the default it is 1), which takes seconds for each text. It is of the texts of at most GIBBS_WORDS words,
        `ess_texts` of them, and missing where there are none.
        """
        grounded, shares, converged = self._grounded(), [], []
        count = len(self.texts) if texts is None else min(texts, len(self.texts))
        for rows in progress(_chunks(count), "mean field"):
            words = self._words(rows)
            games = grounded.games(words)
            converged.append(grounded.attention(games).solved.converged.float().cpu())
            if not gibbs:
                continue
            short = [row for row, count in zip(rows, words.counts.tolist(), strict=True) if count <= GIBBS_WORDS]
            if 0 < len(short) < len(rows):
                games = grounded.games(self._words(short))
            if short:
                shares.append(grounded.attention(games, weighting="gibbs").ess.cpu() / (grounded.samples or ANNEALED))
        result = {"converged": float(torch.cat(converged).mean())}
        if gibbs:
            result["ess_texts"] = sum(map(len, shares))
        if not shares:
            return result
        share = torch.cat(shares)
        return result | {"ess_mean": float(share.mean()), "ess_least": float(share.min())}

    def _compare(
        self,
        scorers: Sequence[Scorer],
        texts: Texts,
        metrics: Sequence[Metric],
        seeds: Sequence[int],
        progress: bool = True,
    ) -> Table:
        classifier, length = self.explainer.classifier, self.explainer.max_length
        return compare(scorers, classifier, texts, metrics, seeds=seeds, max_length=length, progress=progress)

    def _games(self, chunks: Sequence[list[int]], label: str) -> Iterator[tuple[Decisions, Game]]:
        """For each chunk of texts what the classifier decides, and the predicted games of the decided classes."""
        grounded = self._grounded()
        for rows in progress(chunks, label):
            decisions = decide(self.explainer.classifier, self._words(rows), rows)
            yield decisions, grounded.games(decisions.words).game(decisions.target)

    def _words(self, rows: Sequence[int]) -> Words:
        return split_words(self.explainer.tokenizer, self.texts.select(rows), self.explainer.max_length)

    def _grounded(self) -> GroundedClassifier:
        if self.explainer.grounded is None:
            raise ValueError("this classifier has no game to measure: `spinformer ground MODEL TEXTS` learns one")
        return self.explainer.grounded

    def _short_texts(self) -> list[int]:
        short: list[int] = []
        for rows in _chunks(len(self.texts)):
            counts = self._words(rows).counts.tolist()
            short += [row for row, count in zip(rows, counts, strict=True) if MIN_WORDS <= count <= MAX_WORDS]
            if len(short) >= SHORT_TEXTS:
                break
        return short[:SHORT_TEXTS]


def differences(table: Table) -> dict[str, dict[str, dict[str, float | int]]]:
    """Of the game's Shapley values and every other method, on the texts that both could do; none without a game."""
    metrics = ("comprehensiveness", "sufficiency")
    result: dict[str, dict[str, dict[str, float | int]]] = {}
    for name in table.values if REFERENCE in table.values else ():
        common = ~(table.values[REFERENCE][metrics[0]] - table.values[name][metrics[0]]).isnan()
        if name != REFERENCE and int(common.sum()) > 1:
            result[name] = {metric: table.difference(metric, REFERENCE, name).to_dict() for metric in metrics}
    return result


def _chunks(count: int, size: int = CHUNK) -> list[list[int]]:
    return [list(range(start, min(start + size, count))) for start in range(0, count, size)]
