"""Classifiers on data sets: predictions, scores with intervals, calibration, figures; and explanations of them."""

from spinformer.evaluate.classifier import Evaluation, Game, evaluate
from spinformer.evaluate.decisions import Decisions, decide
from spinformer.evaluate.explanations import Difference, Method, Table, compare
from spinformer.evaluate.faithfulness import (
    Comprehensiveness,
    Cost,
    LeaveOneOutCorrelation,
    Metric,
    Stability,
    Sufficiency,
    Summary,
)
from spinformer.evaluate.games import Agreement, Fit, GameFit, InteractionAgreement
from spinformer.evaluate.mapping import Mapping, class_names, map_classes
from spinformer.evaluate.metrics import Scores, scores
from spinformer.evaluate.panel import Findings, Panel
from spinformer.evaluate.plausibility import HighlightAgreement
from spinformer.models.load import load_classifier
from spinformer.models.predict import Predictions, predict

__all__ = [
    "Agreement",
    "Comprehensiveness",
    "Cost",
    "Decisions",
    "Difference",
    "Evaluation",
    "Findings",
    "Fit",
    "Game",
    "GameFit",
    "HighlightAgreement",
    "InteractionAgreement",
    "LeaveOneOutCorrelation",
    "Mapping",
    "Method",
    "Metric",
    "Panel",
    "Predictions",
    "Scores",
    "Stability",
    "Sufficiency",
    "Summary",
    "Table",
    "class_names",
    "compare",
    "decide",
    "evaluate",
    "load_classifier",
    "map_classes",
    "predict",
    "scores",
]
