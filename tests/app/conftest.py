"""A tiny grounded classifier, the page of it on a server in this process, and a browser."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import torch

from research.tools.screenshots import FLAGS, chromium, window
from spinformer.app import digits as digits_module
from spinformer.app.digits import Digits
from spinformer.app.server import bind, web_server
from spinformer.data.images import load_images
from spinformer.models.attractor import AttractorNetwork
from tests.tiny import NLI

ROOT = Path(__file__).parents[2]
PATIENCE = 60_000  # milliseconds; two cores serve two browsers and more


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


def save_text_model(folder: Path, names: tuple[str, ...] = ("negative", "positive"), **config) -> Path:
    """A classifier of single texts with random weights, and a random game; config: of the classifier, as its
    problem_type."""
    from transformers import BertForSequenceClassification

    from spinformer.models.game_head import GameHead, GameHeadConfig
    from spinformer.models.identity import weights_digest
    from spinformer.models.outputs import outputs_of
    from tests.tiny import bert, tokenizer

    with torch.random.fork_rng():
        torch.manual_seed(5)
        sizes = {"num_labels": len(names), "id2label": dict(enumerate(names)), **config}
        model = BertForSequenceClassification(bert(**sizes)).eval()
        sizes = {"heads": 4, "dim": 16, "hidden": 32, "readout": 16, "outputs": outputs_of(model), "texts": 1}
        model.save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        GameHead(GameHeadConfig((0, 1, 2), 32, len(names), model=weights_digest(model), **sizes)).save(folder)
    return folder


class FewDigits(Digits):
    """Learns from 2,000 digits."""

    def _trained(self) -> AttractorNetwork:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(digits_module, "data", SimpleNamespace(load_images=lambda name: load_images(name).cut(2000)))
            return super()._trained()


@contextmanager
def open_window(browser, url: str, width: str) -> Iterator[tuple]:
    """A window of one width with what its pages did that they must not do; it keeps the page's files for all tests."""
    with window(browser, width) as shown:
        shown.set_default_timeout(PATIENCE)
        wrong: list[str] = []
        own = urlsplit(url).netloc
        shown.on("console", lambda said: wrong.append(f"console: {said.text}") if said.type == "error" else None)
        shown.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        shown.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        shown.on(
            "request",
            lambda sent: (
                wrong.append(f"went to {sent.url}")
                if urlsplit(sent.url).scheme not in ("data", "blob", "about") and urlsplit(sent.url).netloc != own
                else None
            ),
        )
        yield shown, wrong


def leave_window(shown, wrong: list[str], picture: Path) -> None:
    """Keep a picture of the page; whatever it did that it must not do fails the test."""
    shown.screenshot(path=picture, full_page=True)
    wide = shown.evaluate("document.documentElement.scrollWidth") - shown.viewport_size["width"]
    found = wrong.copy()
    wrong.clear()
    assert found == []
    assert wide <= 0, f"the page is {wide} pixels wider than the window"


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
    """The network behind the second tab, trained once, briefly, on a quarter of the digits."""
    return FewDigits(epochs=1)


@pytest.fixture(scope="session")
def url(model_folder, digits):
    """Where the page is served."""
    pytest.importorskip("gradio")
    from spinformer.app import Classifier, application, build

    blocks = build(Classifier.load(str(model_folder)), digits)
    with serving(application(blocks, hosts=("127.0.0.1", "localhost", "[::1]"))) as address:
        yield address


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory) -> Path:
    return save_text_model(tmp_path_factory.mktemp("checkpoints") / "single")


@pytest.fixture(scope="module")  # its event loop would be in the way of other modules
def browser():
    """Chromium: the one that SPINFORMER_CHROMIUM names, the system's, or playwright's own."""
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def output() -> Path:
    """Where screenshots are kept."""
    folder = Path(os.environ.get("SPINFORMER_TEST_OUTPUT") or ROOT / "test-output") / "app"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
