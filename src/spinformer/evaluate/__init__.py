"""Scores of a classifier's answers (accuracy, calibration) and of their explanations (faithfulness, stability, cost).

Names are imported when they are used: scores of logits need torch alone, predictions also transformers.
"""

from typing import TYPE_CHECKING

from spinformer._base.lazy import lazy_attributes

if TYPE_CHECKING:
    from spinformer.evaluate.answers.class_mapping import ClassMapping, class_names, map_classes
    from spinformer.evaluate.answers.evaluation import Evaluation, GameDiagnostics, evaluate
    from spinformer.evaluate.answers.metrics import Scores, scores
    from spinformer.evaluate.explanations.comparison import Difference, Table, compare
    from spinformer.evaluate.explanations.decisions import Decisions, decide
    from spinformer.evaluate.explanations.exactness import Exactness, Setting, measure_exactness
    from spinformer.evaluate.explanations.faithfulness import (
        Comprehensiveness,
        Cost,
        LeaveOneOutCorrelation,
        Stability,
        Sufficiency,
    )
    from spinformer.evaluate.explanations.game_fit import Agreement, Fit, GameFit, InteractionAgreement
    from spinformer.evaluate.explanations.highlights import HighlightAgreement
    from spinformer.evaluate.explanations.metric import Metric, Summary
    from spinformer.evaluate.explanations.peers import measure_peers
    from spinformer.evaluate.explanations.report import GroundingReport, report
    from spinformer.evaluate.explanations.study import Study, StudyResult
    from spinformer.evaluate.explanations.tables import ExactTable, TabulatedClassifier, choose, tabulate
    from spinformer.models.loading import load_classifier
    from spinformer.models.predict import Predictions, predict

__all__ = [
    "Agreement",
    "ClassMapping",
    "Comprehensiveness",
    "Cost",
    "Decisions",
    "Difference",
    "Evaluation",
    "ExactTable",
    "Exactness",
    "Fit",
    "GameDiagnostics",
    "GameFit",
    "GroundingReport",
    "HighlightAgreement",
    "InteractionAgreement",
    "LeaveOneOutCorrelation",
    "Metric",
    "Predictions",
    "Scores",
    "Setting",
    "Stability",
    "Study",
    "StudyResult",
    "Sufficiency",
    "Summary",
    "Table",
    "TabulatedClassifier",
    "choose",
    "class_names",
    "compare",
    "decide",
    "evaluate",
    "load_classifier",
    "map_classes",
    "measure_exactness",
    "measure_peers",
    "predict",
    "report",
    "scores",
    "tabulate",
]

_ANSWERS, _EXPLANATIONS = f"{__name__}.answers", f"{__name__}.explanations"

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        f"{_ANSWERS}.class_mapping": ("ClassMapping", "class_names", "map_classes"),
        f"{_ANSWERS}.evaluation": ("Evaluation", "GameDiagnostics", "evaluate"),
        f"{_ANSWERS}.metrics": ("Scores", "scores"),
        f"{_EXPLANATIONS}.comparison": ("Difference", "Table", "compare"),
        f"{_EXPLANATIONS}.decisions": ("Decisions", "decide"),
        f"{_EXPLANATIONS}.exactness": ("Exactness", "Setting", "measure_exactness"),
        f"{_EXPLANATIONS}.faithfulness": (
            "Comprehensiveness",
            "Cost",
            "LeaveOneOutCorrelation",
            "Stability",
            "Sufficiency",
        ),
        f"{_EXPLANATIONS}.game_fit": ("Agreement", "Fit", "GameFit", "InteractionAgreement"),
        f"{_EXPLANATIONS}.highlights": ("HighlightAgreement",),
        f"{_EXPLANATIONS}.metric": ("Metric", "Summary"),
        f"{_EXPLANATIONS}.peers": ("measure_peers",),
        f"{_EXPLANATIONS}.report": ("GroundingReport", "report"),
        f"{_EXPLANATIONS}.study": ("Study", "StudyResult"),
        f"{_EXPLANATIONS}.tables": ("ExactTable", "TabulatedClassifier", "choose", "tabulate"),
        "spinformer.models.loading": ("load_classifier",),
        "spinformer.models.predict": ("Predictions", "predict"),
    },
)
