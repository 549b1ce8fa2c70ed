"""A tiny grounded classifier, the page of it on a server in this process, and a browser."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from spinformer.app.digits import Digits
from spinformer.app.server import bind, web_server
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


def save_model(encoder: Path, folder: Path) -> Path:
    """A classifier that is a game itself, with random weights wide enough that answers differ."""
    from spinformer.models import NeuroGameForSequenceClassification
    from tests.tiny import tokenizer

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


@contextmanager
def serving(app) -> Iterator[str]:
    """An ASGI application on a server in a thread, as `serve` would serve it; gives its address."""
    bound, server = bind("127.0.0.1", 0), web_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


@pytest.fixture(scope="session")
def model_folder(encoder, tmp_path_factory) -> Path:
    return save_model(encoder, tmp_path_factory.mktemp("checkpoints") / "tiny")


@pytest.fixture(scope="session")
def digits() -> Digits:
    """The network behind the second tab, trained once, briefly."""
    return Digits(epochs=1)


@pytest.fixture(scope="session")
def url(model_folder, digits):
    """Where the page is served."""
    pytest.importorskip("gradio")
    from spinformer.app import Classifier, application, build

    blocks = build(Classifier.load(str(model_folder)), digits)
    with serving(application(blocks, hosts=("127.0.0.1", "localhost", "[::1]"))) as address:
        yield address


@pytest.fixture(scope="module")  # its event loop would be in the way of other modules
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
