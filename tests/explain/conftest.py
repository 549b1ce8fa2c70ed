"""A tiny classifier that transformers brings, with a game beside it."""

import pytest
from transformers import AutoModelForSequenceClassification

from spinformer.data.texts import Texts
from spinformer.training.game import GroundingOptions, train_game_head
from tests.tiny import nli_classifier, rows, tokenizer

SMALL_HEAD = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "batch_size": 8}


@pytest.fixture(scope="session")
def grounded_folder(tmp_path_factory):
    """A folder with the classifier, its tokenizer and its game head."""
    folder = tmp_path_factory.mktemp("explained")
    model = nli_classifier()
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    pairs = rows(64)
    texts = Texts([row["premise"] for row in pairs], [row["hypothesis"] for row in pairs])
    train_game_head(model, tokenizer(), texts, folder, GroundingOptions(**SMALL_HEAD, epochs=2))
    return folder


@pytest.fixture(scope="module")
def model(grounded_folder):
    """The classifier, which knows its folder."""
    return AutoModelForSequenceClassification.from_pretrained(grounded_folder).eval()
