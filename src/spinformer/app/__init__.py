"""The web page, which explains a classifier and restores digits; `spinformer app` serves it."""

from spinformer.app.classifier import Classifier
from spinformer.app.page import build
from spinformer.app.server import application, serve

__all__ = ["Classifier", "application", "build", "serve"]
