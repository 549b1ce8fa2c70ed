"""The page in Gradio: a text explained, a file explained, a digit restored."""

import os
from typing import Any

from spinformer._base.extras import require
from spinformer.app import limits
from spinformer.app.attractor_tab import attractor_tab
from spinformer.app.classifier import Classifier
from spinformer.app.digits import Digits
from spinformer.app.explain_tab import explain_tab
from spinformer.app.file_tab import file_tab

TITLE = "spinformer: which words decided"
HEADER = '<header class="top"><h1>spinformer</h1><p>which words, and which pairs of words, decided</p></header>'


def build(classifier: Classifier, digits: Digits | None = None) -> Any:
    """The page as Gradio blocks. The first example is explained at once: a classifier without a game fails here."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    gradio = require("gradio", extra="app")
    with gradio.Blocks(title=TITLE, analytics_enabled=False, fill_width=False) as blocks:
        gradio.HTML(HEADER)
        with gradio.Tabs():
            with gradio.Tab("Text" if not classifier.task.paired else "Two texts", id="text"):
                explain_tab(gradio, classifier)
            with gradio.Tab("File", id="file"):
                file_tab(gradio, classifier)
            with gradio.Tab("Attractor", id="attractor"):
                attractor_tab(gradio, digits or Digits())
    blocks.queue(max_size=limits.QUEUE, default_concurrency_limit=limits.AT_ONCE)
    blocks.state_session_capacity = limits.SESSIONS
    return blocks
