"""Every measurement of a classifier's explanations, on the same texts: how faithful, how stable, at what cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from spinformer.data.highlights import Highlights
from spinformer.data.texts import Texts
from spinformer.data.words import split
from spinformer.evaluate.decisions import decide
from spinformer.evaluate.explanations import Method, Table, compare
from spinformer.evaluate.faithfulness import Comprehensiveness, LeaveOneOutCorrelation, Sufficiency
from spinformer.evaluate.games import MAX_WORDS, Agreement, Fit, GameFit, InteractionAgreement
from spinformer.evaluate.plausibility import HighlightAgreement
from spinformer.explain.grounded import Grounded
from spinformer.models.masked import MaskedClassifier
from spinformer.progress import progress

STABLE = 100  # texts, the first ones, that stability over seeds is measured on
SHORT = 12  # texts for the exact interactions, 2^W passes each
MIN_WORDS = 4  # of them: fewer words have too few pairs to correlate
OURS = "grounded shapley"


@dataclass(frozen=True)
class Panel:
    """A classifier and the texts that its explanations are measured on; grounded: its game, where it has one."""

    classifier: MaskedClassifier
    texts: Texts
    grounded: Grounded | None = None
    max_length: int = 128


@dataclass(frozen=True)
class Findings:
    """table: comprehensiveness, sufficiency, correlation with leave-one-out and cost of every method; stability: over
    seeds, of the first texts alone; highlights: agreement with the words that people marked, on their texts. Of the
    game, where there is one: fit, of v(C); interactions, with the real ones on short texts, None where no text is
    short; diagnostics, of its Ising model.
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
                f"\nfit of v(C): R squared {self.fit.pooled:.3f}, about each text's own mean {self.fit.within:.3f}; "
                f"{texts} texts, {coalitions} coalitions of each"
            )
        if self.interactions is not None:
            lines.append(
                f"interactions beside the real ones: Spearman {self.interactions.pooled('spearman'):.3f}, "
                f"Pearson {self.interactions.pooled('pearson'):.3f}; {sum(map(len, self.interactions.real))} pairs, "
                f"{len(self.interactions.real)} texts of {MIN_WORDS} to {MAX_WORDS} words"
            )
        elif self.fit is not None:
            lines.append(f"interactions: not measured, for want of texts of {MIN_WORDS} to {MAX_WORDS} words")
        if self.diagnostics is not None:
            found = self.diagnostics
            lines.append(
                f"effective sample size under Gibbs weights, part of K: mean {found['ess_mean']:.2f}, "
                f"least {found['ess_least']:.2f}; mean field: {found['converged']:.1%} converged"
            )
        if self.highlights is not None:
            lines.append(f"\n{self.highlights}")
        return "\n".join(lines)


def measure(
    panel: Panel,
    methods: Sequence[Method],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    highlights: Highlights | None = None,
    marked: Sequence[Method] | None = None,
) -> Findings:
    """All of `Findings`. seeds: for the stability, none or at least 2; marked: the methods that are held against the
    highlights, all of them where not given.
    """
    metrics = [Comprehensiveness(), Sufficiency(), LeaveOneOutCorrelation()]
    table = compare(methods, panel.classifier, panel.texts, metrics, max_length=panel.max_length)
    stability, chosen = None, None
    drawn = [method for method in methods if hasattr(method, "seeded")]
    if seeds and drawn:
        few = panel.texts.select(range(min(STABLE, len(panel.texts))))
        stability = compare(drawn, panel.classifier, few, (), seeds=seeds, max_length=panel.max_length)
    if highlights is not None:
        agreement = HighlightAgreement(highlights)
        asked = methods if marked is None else marked
        chosen = compare(asked, panel.classifier, highlights.texts, [agreement], max_length=panel.max_length)
    if panel.grounded is None:
        return Findings(table, stability, chosen)
    return Findings(table, stability, chosen, fit(panel), interactions(panel), diagnostics(panel))


def fit(panel: Panel, coalitions: int = 32, chunk: int = 32) -> Fit:
    """R squared of v(C) on the texts, at random coalitions of each."""
    grounded, gauge, parts = _grounded(panel), GameFit(coalitions), []
    for rows in progress(_chunks(len(panel.texts), chunk), "fit"):
        words = split(panel.classifier.tokenizer, panel.texts.select(rows), panel.max_length)
        decisions = decide(panel.classifier, words, rows)
        parts.append(gauge(decisions, grounded.games(words).game(decisions.target)))
    return Fit.join(parts)


def interactions(panel: Panel) -> Agreement | None:
    """The game's pairwise interactions against the classifier's own, exact, on the first short texts."""
    grounded, gauge, parts = _grounded(panel), InteractionAgreement(), []
    for row in progress(_short(panel), "interactions"):
        words = split(panel.classifier.tokenizer, panel.texts.select([row]), panel.max_length)
        decisions = decide(panel.classifier, words, [row])
        parts.append(gauge(decisions, grounded.games(words).game(decisions.target)))
    return Agreement.join(parts) if parts else None


def diagnostics(panel: Panel) -> dict[str, float]:
    """Over the texts: convergence of the mean field, and the effective sample size as a part of K where coalitions are
    weighted by Gibbs factors (where they count alike, as by default, it is all of K)."""
    grounded, ess, converged = _grounded(panel), [], []
    for rows in progress(_chunks(len(panel.texts)), "mean field"):
        games = grounded.games(split(panel.classifier.tokenizer, panel.texts.select(rows), panel.max_length))
        converged.append(grounded.play(games).solved.converged.float().cpu())
        ess.append(grounded.play(games, weighting="gibbs").ess.cpu() / grounded.samples)
    share = torch.cat(ess)
    return {
        "ess_texts": len(share),
        "ess_mean": float(share.mean()),
        "ess_least": float(share.min()),
        "converged": float(torch.cat(converged).mean()),
    }


def differences(table: Table) -> dict[str, Any]:
    """Of the game's Shapley values and every other method, on the same texts; none without a game, or with one text."""
    if OURS not in table.values or len(next(iter(table.values[OURS].values()))) < 2:
        return {}
    metrics = ("comprehensiveness", "sufficiency")
    return {
        name: {metric: table.difference(metric, OURS, name).to_dict() for metric in metrics}
        for name in table.values
        if name != OURS
    }


def _grounded(panel: Panel) -> Grounded:
    if panel.grounded is None:
        raise ValueError("this classifier has no game to measure: `spinformer ground MODEL TEXTS` learns one")
    return panel.grounded


def _short(panel: Panel) -> list[int]:
    found: list[int] = []
    for rows in _chunks(len(panel.texts)):
        counts = split(panel.classifier.tokenizer, panel.texts.select(rows), panel.max_length).counts.tolist()
        found += [row for row, count in zip(rows, counts, strict=True) if MIN_WORDS <= count <= MAX_WORDS]
        if len(found) >= SHORT:
            break
    return found[:SHORT]


def _chunks(count: int, size: int = 32) -> list[list[int]]:
    return [list(range(start, min(start + size, count))) for start in range(0, count, size)]
