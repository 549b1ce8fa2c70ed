"""Every measurement of a classifier's explanations on the same texts: how faithful, how stable, at what cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from spinformer._base.progress import progress
from spinformer.data.highlights import Highlights
from spinformer.data.texts import Texts
from spinformer.data.words import Words, split_words
from spinformer.evaluate.explanations.comparison import Table, compare
from spinformer.evaluate.explanations.decisions import Decisions, decide
from spinformer.evaluate.explanations.faithfulness import Comprehensiveness, LeaveOneOutCorrelation, Sufficiency
from spinformer.evaluate.explanations.game_fit import MAX_WORDS, Agreement, Fit, GameFit, InteractionAgreement
from spinformer.evaluate.explanations.highlights import HighlightAgreement
from spinformer.evaluate.explanations.metric import Metric
from spinformer.explain.explainer import Explainer
from spinformer.explain.grounded import GroundedClassifier
from spinformer.explain.scoring import Scorer, SeededScorer
from spinformer.games import Game

# Coalitions for the values of words and of pairs in a game that is measured: `Explainer(..., samples=SAMPLES,
# pair_samples=PAIR_SAMPLES)`. All figures in the documents are measured with them.
SAMPLES, PAIR_SAMPLES = 32, 8
STABILITY_TEXTS = 100  # the first texts, on which stability over seeds is measured
SHORT_TEXTS = 12  # texts for the exact interactions, which cost 2^W passes each
MIN_WORDS = 4  # of such a text: fewer words have too few pairs to correlate
CHUNK = 32  # texts at a time
REFERENCE = "shapley"  # the method that all others are compared with


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
            lines.append(
                "effective sample size under Gibbs weights, share of the coalitions: "
                f"mean {self.diagnostics['ess_mean']:.2f}, lowest {self.diagnostics['ess_least']:.2f}; "
                f"mean field: {self.diagnostics['converged']:.1%} converged"
            )
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
        table = self._compare(scorers, self.texts, [Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()])
        stability = human = None
        seeded = [scorer for scorer in scorers if isinstance(scorer, SeededScorer)]
        if seeds and seeded:
            first = self.texts.select(range(min(STABILITY_TEXTS, len(self.texts))))
            stability = self._compare(seeded, first, (), seeds)
        if highlights is not None:
            chosen = scorers if highlight_scorers is None else highlight_scorers
            human = self._compare(chosen, highlights.texts, [HighlightAgreement(highlights)])
        if self.explainer.grounded is None:
            return StudyResult(table, stability, human)
        return StudyResult(table, stability, human, self.fit(), self.interactions(), self.diagnostics())

    def fit(self, coalitions: int = 32, chunk: int = CHUNK) -> Fit:
        """R squared of v(C) on the texts, at random coalitions of each."""
        metric = GameFit(coalitions)
        return Fit.join([metric(*part) for part in self._games(_chunks(len(self.texts), chunk), "fit")])

    def interactions(self) -> Agreement | None:
        """The interactions of the game against the exact ones of the classifier, on the first short texts."""
        metric = InteractionAgreement()
        short = [[row] for row in self._short_texts()]
        return Agreement.join([metric(*part) for part in self._games(short, "interactions")]) if short else None

    def diagnostics(self) -> dict[str, float]:
        """Over the texts: convergence of the mean field, and the effective sample size under Gibbs weights as a share
        of the coalitions (with the uniform weights of the default it is 1).
        """
        grounded, shares, converged = self._grounded(), [], []
        for rows in progress(_chunks(len(self.texts)), "mean field"):
            games = grounded.games(self._words(rows))
            converged.append(grounded.attention(games).solved.converged.float().cpu())
            shares.append(grounded.attention(games, weighting="gibbs").ess.cpu() / grounded.samples)
        share = torch.cat(shares)
        return {
            "ess_texts": len(share),
            "ess_mean": float(share.mean()),
            "ess_least": float(share.min()),
            "converged": float(torch.cat(converged).mean()),
        }

    def _compare(
        self, scorers: Sequence[Scorer], texts: Texts, metrics: Sequence[Metric], seeds: Sequence[int] = ()
    ) -> Table:
        classifier, max_length = self.explainer.classifier, self.explainer.max_length
        return compare(scorers, classifier, texts, metrics, seeds=seeds, max_length=max_length)

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
    """Of the game's Shapley values and every other method, on the same texts; none without a game, or with one text."""
    if REFERENCE not in table.values or len(next(iter(table.values[REFERENCE].values()))) < 2:
        return {}
    metrics = ("comprehensiveness", "sufficiency")
    return {
        name: {metric: table.difference(metric, REFERENCE, name).to_dict() for metric in metrics}
        for name in table.values
        if name != REFERENCE
    }


def _chunks(count: int, size: int = CHUNK) -> list[list[int]]:
    return [list(range(start, min(start + size, count))) for start in range(0, count, size)]
