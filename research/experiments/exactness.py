"""Several groundings of one classifier, and shapiq's estimators, against the exact values of the same short texts."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from research.experiments.grounding import Trial, ground
from spinformer.data.texts import Texts
from spinformer.evaluate.explanations.exactness import Setting, measure_exactness
from spinformer.evaluate.explanations.peers import measure_peers
from spinformer.evaluate.explanations.study import Study
from spinformer.evaluate.explanations.tables import ExactTable, choose, tabulate
from spinformer.explain.explainer import Explainer
from spinformer.models.game_head import GameHead
from spinformer.models.masked import MaskedClassifier
from spinformer.training.game import GroundingOptions

PASSES = (32, 64, 128, 256)
FITTED = 500  # test texts, at most, on which the fit is measured
PROMISES = (0.1, 0.05, 0.02)
SETTINGS = (
    Setting("shapley"),
    *(Setting("shapley", passes) for passes in PASSES),
    *(Setting("shapley", until=error) for error in PROMISES),
    Setting("banzhaf"),
    *(Setting("banzhaf", passes) for passes in PASSES[::3]),
    *(Setting("kernel-shap", passes) for passes in PASSES),
)
# The passes that peers may spend where ours spend PASSES: five times as many for words, three times as many for pairs;
# and where ours spend one, 400 for words and 700 for pairs.
PEER_BUDGETS = tuple(sorted({*(factor * passes for passes in PASSES for factor in (3, 5)), 400, 700}))


def exact_tables(trial: Trial, options: GroundingOptions, count: int, path: Path) -> tuple[Texts, list[ExactTable]]:
    """`count` short texts among the test texts, and their exact tables; those in the file at `path` cost nothing."""
    texts = choose(trial.test, trial.tokenizer, count, max_length=trial.max_length)
    classifier = MaskedClassifier(trial.model, trial.tokenizer, options.masking)
    return texts, tabulate(classifier, texts, path, max_length=trial.max_length)


def measure_ours(trial: Trial, head: GameHead, texts: Texts, tables: Sequence[ExactTable]) -> dict[str, Any]:
    """Explanations with a game, by default options."""
    explainer = Explainer(trial.model, trial.tokenizer, game=head, max_length=trial.max_length)
    return {"exactness": measure_exactness(explainer, texts, tables, SETTINGS).to_dict()}


def measure_enough(
    trial: Trial, options: GroundingOptions, folder: Path, texts: Texts, tables: Sequence[ExactTable]
) -> dict[str, Any]:
    """A game learnt from the texts of the trial: what it took, its fit, and the error of one pass.

    seconds: of learning and of measuring its misfit, None where it was learnt before; passes: masked ones.
    """
    options = options.suited(len(trial.train))
    head, seconds = ground(trial, options, folder)
    explainer = Explainer(trial.model, trial.tokenizer, game=head, max_length=trial.max_length)
    found = measure_exactness(explainer, texts, tables, (Setting("shapley"),)).to_dict()["settings"]
    row = next(iter(found.values()))
    return {
        "texts": len(trial.train),
        "passes": len(trial.train) * options.epochs * options.subsets,
        "seconds": seconds,
        "fit": Study(explainer, trial.test.select(range(min(FITTED, len(trial.test))))).fit().to_dict(),
        "words": row["values"]["error"]["mean"],
        "pairs": row["pairs"]["error"]["mean"],
        "device": trial.model.device.type,
        "options": asdict(options),
    }


def measure_others(tables: Sequence[ExactTable]) -> dict[str, Any]:
    """What shapiq's estimators make of the same tables."""
    rows, absent = measure_peers(tables, PEER_BUDGETS)
    return {"peers": {row.name: row.to_dict() for row in rows}, "absent": absent}
