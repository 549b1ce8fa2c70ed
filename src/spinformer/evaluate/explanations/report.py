"""How faithful a learnt game is, on texts that it was not trained on."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinformer._base.files import atomic_text
from spinformer._base.progress import silence
from spinformer.data.texts import Texts
from spinformer.evaluate.explanations.comparison import Table, compare
from spinformer.evaluate.explanations.faithfulness import Cost
from spinformer.evaluate.explanations.forecast import Forecast, few
from spinformer.evaluate.explanations.game_fit import Fit
from spinformer.evaluate.explanations.study import CHUNK, REFERENCE, Study
from spinformer.explain.explainer import Explainer
from spinformer.models.game_head import FOLDER
from spinformer.models.misfit import MIN_FIT

# Below these, or MIN_FIT, a game should not be relied upon: its comprehensiveness as a share of leave-one-out's, and as
# a multiple of that of random scores.
MIN_SHARE, MIN_LIFT = 0.9, 2.0
METHODS = (REFERENCE, "leave-one-out", "random")
REPORT = "report.json"  # beside the game head
COALITIONS = 16  # of each text, for the fit
WORTH = 0.01  # of R squared: less is not worth more texts


@dataclass(frozen=True)
class GroundingReport:
    """fit: of v(C) on unseen texts and coalitions; table: comprehensiveness and sufficiency of the game's Shapley
    values (one pass) beside leave-one-out (one pass for each word) and random scores; texts: how many; learnt: the fit
    on texts that the game was learnt from, None where none were given.
    """

    fit: Fit
    table: Table
    texts: int
    learnt: Fit | None = None

    @property
    def warnings(self) -> list[str]:
        """One line for each threshold that the game does not reach."""
        game, leave_one_out, random = (self.table.summary(name, "comprehensiveness").mean for name in METHODS)
        lines = []
        if not self.fit.pooled >= MIN_FIT:
            lines.append(f"v(C) explains {self.fit.pooled:.0%} of the variance on unseen texts, below {MIN_FIT:.0%}")
        if not game >= MIN_SHARE * leave_one_out:
            lines.append(
                f"comprehensiveness {game:.3f} is below {MIN_SHARE:.0%} of leave-one-out's {leave_one_out:.3f}"
            )
        if not game >= MIN_LIFT * random:
            lines.append(f"comprehensiveness {game:.3f} is below {MIN_LIFT:g} times that of chance, {random:.3f}")
        return lines

    @property
    def advice(self) -> str | None:
        """What more texts would bring: what is known of the texts learnt from, and not of others, is their share."""
        if self.learnt is None:
            return None
        known, gap = self.learnt.pooled, self.learnt.pooled - self.fit.pooled
        seen = f"on texts that it learnt from {known:.3f}"
        if gap < WORTH:
            return f"{seen}: more texts like these would bring little by themselves; more epochs, or a wider head, may"
        return f"{seen}: more texts like these would bring up to {gap:.2f} by themselves"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        learnt = None if self.learnt is None else self.learnt.to_dict()
        fits = {"texts": self.texts, "fit": self.fit.to_dict(), "learnt": learnt}
        return {**fits, **self.table.to_dict(), "warnings": self.warnings, "advice": self.advice}

    def save(self, folder: Path) -> Path:
        """Write report.json beside the game head that lies in `folder`."""
        return atomic_text(folder / FOLDER / REPORT, json.dumps(self.to_dict(), indent=1) + "\n")

    def __str__(self) -> str:
        fit = f"fit of v(C) on {self.texts} unseen texts: R squared {self.fit.pooled:.3f}"
        lines = [fit, *filter(None, [self.advice]), "", str(self.table)]
        return "\n".join([*lines, *(f"WARNING: {text}" for text in self.warnings)])


def forecast(explainer: Explainer, texts: Texts, *, learnt: Texts | None = None) -> Forecast:
    """What `report` will take with the same arguments, from what it takes on a few of the texts."""
    sample = texts.select(few(texts))
    with silence():
        with Cost(explainer.classifier) as fit:
            Study(explainer, sample).fit(COALITIONS)
        with Cost(explainer.classifier) as whole:
            report(explainer, sample)
    total = Forecast.of(whole, len(texts) / len(sample))
    return total if learnt is None else total + Forecast.of(fit, len(learnt) / len(sample))


def report(
    explainer: Explainer, texts: Texts, *, learnt: Texts | None = None, coalitions: int = COALITIONS, chunk: int = CHUNK
) -> GroundingReport:
    """Measure the game of an explainer on texts that it was not trained on.

    learnt: texts that it was trained on, to say what more of them would bring. Costs about 2 W + 20 passes for a text
    of W words, and `coalitions` + 1 for each that was learnt from.
    """
    fit = Study(explainer, texts).fit(coalitions, chunk)
    known = None if learnt is None else Study(explainer, learnt).fit(coalitions, chunk)
    scorers = [explainer.scorer(name) for name in METHODS]
    table = compare(scorers, explainer.classifier, texts, chunk=chunk, max_length=explainer.max_length)
    return GroundingReport(fit, table, len(texts), known)
