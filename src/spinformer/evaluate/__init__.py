"""Classifiers on data sets: predictions, scores with intervals, calibration, figures."""

from spinformer.evaluate.classifier import Evaluation, Game, evaluate
from spinformer.evaluate.load import load_classifier
from spinformer.evaluate.mapping import Mapping, class_names, map_classes
from spinformer.evaluate.metrics import Scores, scores
from spinformer.evaluate.predict import Predictions, predict

__all__ = [
    "Evaluation",
    "Game",
    "Mapping",
    "Predictions",
    "Scores",
    "class_names",
    "evaluate",
    "load_classifier",
    "map_classes",
    "predict",
    "scores",
]
