"""A tiny grounded classifier, the page that `spinformer app` serves of it, and a browser."""

import os
import shutil
from pathlib import Path

import pytest
import torch

from tests.tiny import NLI

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def model_folder(encoder, tmp_path_factory) -> Path:
    """A classifier that is a game itself, with random weights wide enough that answers differ."""
    from spinformer.models import NeuroGameForSequenceClassification
    from tests.tiny import tokenizer

    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    with torch.random.fork_rng():
        torch.manual_seed(3)
        sizes = {"heads": 4, "dim": 16, "hidden": 32, "readout": 32}
        model = NeuroGameForSequenceClassification.from_encoder(
            str(encoder), labels=NLI, head="grounded", grounding=sizes
        )
        with torch.no_grad():
            for parameter in model.classifier.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def url(model_folder):
    """Where the page is served."""
    pytest.importorskip("gradio")
    from research.benchmarks.app import server

    with server("--model", str(model_folder)) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    """Chromium: the one that SPINFORMER_CHROMIUM names, the system's, or playwright's own."""
    api = pytest.importorskip("playwright.sync_api")
    found = os.environ.get("SPINFORMER_CHROMIUM") or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    with api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def output() -> Path:
    """Where screenshots are kept."""
    folder = Path(os.environ.get("SPINFORMER_TEST_OUTPUT") or ROOT / "test-output") / "app"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
