"""How faithful a grounded game came out, on texts that it was not trained on."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinformer.data.texts import Texts
from spinformer.evaluate.explanations import Table, compare
from spinformer.evaluate.games import Fit
from spinformer.evaluate.methods import Source, methods
from spinformer.evaluate.panel import OURS, Panel, fit
from spinformer.explain.grounded import Grounded
from spinformer.models.grounding import FOLDER
from spinformer.models.masked import MaskedClassifier

# Below these a head is not to be relied upon: the part of the variance of v(C) that it explains, its comprehensiveness
# as a part of leave-one-out's, and as a multiple of random scores'.
LEAST_FIT, LEAST_PART, LEAST_LIFT = 0.5, 0.9, 2.0
CAREFUL, CHANCE = "leave-one-out", "random"


@dataclass(frozen=True)
class GroundingReport:
    """fit: of v(C) on unseen texts and coalitions; table: comprehensiveness and sufficiency of the head's Shapley
    values (one pass) beside leave-one-out (one pass a word) and random scores; texts: how many.
    """

    fit: Fit
    table: Table
    texts: int

    @property
    def warnings(self) -> list[str]:
        """What falls short, in words; empty where nothing does."""
        ours, careful, chance = (self.table.summary(name, "comprehensiveness").mean for name in (OURS, CAREFUL, CHANCE))
        found = []
        if not self.fit.pooled >= LEAST_FIT:
            found.append(f"v(C) explains {self.fit.pooled:.0%} of the variance on unseen texts, below {LEAST_FIT:.0%}")
        if not ours >= LEAST_PART * careful:
            found.append(f"comprehensiveness {ours:.3f} is below {LEAST_PART:.0%} of leave-one-out's {careful:.3f}")
        if not ours >= LEAST_LIFT * chance:
            found.append(f"comprehensiveness {ours:.3f} is below {LEAST_LIFT:g} times that of chance, {chance:.3f}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"texts": self.texts, "fit": self.fit.to_dict(), **self.table.to_dict(), "warnings": self.warnings}

    def save(self, folder: Path) -> Path:
        """Beside the head, as report.json."""
        path = folder / FOLDER / "report.json"
        path.write_text(json.dumps(self.to_dict(), indent=1) + "\n")
        return path

    def __str__(self) -> str:
        fit = f"fit of v(C) on {self.texts} unseen texts: R squared {self.fit.pooled:.3f}"
        return "\n".join([fit, "", str(self.table), *(f"WARNING: {text}" for text in self.warnings)])


def report(
    grounded: Grounded, tokenizer: Any, texts: Texts, *, max_length: int = 128, coalitions: int = 16, chunk: int = 32
) -> GroundingReport:
    """Measure a head on texts that it has not seen; costs about 2 W + 20 passes a text of W words."""
    classifier = MaskedClassifier(grounded.model, tokenizer, grounded.masking)
    found = fit(Panel(classifier, texts, grounded, max_length), coalitions, chunk)
    chosen = methods(["shapley", "loo", "random"], Source(classifier, grounded))
    table = compare(chosen, classifier, texts, chunk=chunk, max_length=max_length)
    return GroundingReport(found, table, len(texts))
