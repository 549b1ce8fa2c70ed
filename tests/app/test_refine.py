"""Refinement by masked passes: the explainer's own numbers, within a time, with word of how far it is."""

import itertools
from types import SimpleNamespace

import pytest

pytest.importorskip("gradio")

from research.benchmarks.app import functions, send_request
from research.torture.page_client import exchange, join
from spinformer.app import Classifier, classifier, limits
from spinformer.explain.explainer import Explainer

TEXT = "a dog runs outside a man sleeps inside the red cat eats"
VALUES = [TEXT, "", 0.25, 64, -1, -1]


@pytest.fixture(scope="module")
def loaded(text_folder):
    return Classifier.load(str(text_folder))


def test_the_numbers_are_those_of_the_explainer(loaded):
    told = []
    refined = loaded.refine(*VALUES, 256, tell=lambda *how: told.append(how))
    explainer = Explainer(loaded.explainer.model, loaded.explainer.tokenizer, samples=64)
    assert refined == explainer(TEXT, passes=256)
    assert refined.passes > 200
    assert told[0] == (0, 256)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert refined.importance_stderr[0] < loaded.explain(*VALUES).importance_stderr[0] or refined.notes == ()


def test_time_is_limited(loaded, monkeypatch):
    clock = itertools.count(0, 40)
    monkeypatch.setattr(classifier, "monotonic", lambda: next(clock))
    refined = loaded.refine(*VALUES, 256)
    assert refined.notes[0] == "256 passes take longer than 60 seconds: this is what one pass says"
    assert refined.passes == 1
    assert refined.importance == loaded.explain(*VALUES).importance


@pytest.mark.parametrize("value", [0, 65, 10**9, 64.5, True, None, "64", float("nan")])
def test_passes_outside_of_the_limits(loaded, value):
    with pytest.raises(ValueError, match=r"The number of passes must be one of 64, 256, 1024\."):
        loaded.refine(*VALUES, value)


@pytest.mark.slow
def test_few_may_wait(url, monkeypatch):
    values = ["a dog", "a cat", 0.25, 64, -1, -1]
    assert 'class="result"' in send_request(url, "refine", [*values, 64])
    monkeypatch.setattr(limits, "LONG_WAITING", 0)
    reply = exchange(url, join([*values, 64], functions(url)["refine"], "late"))
    assert reply.status == 503
    assert "Others wait for refinements and files already. Please try again in a minute." in reply.text
    assert 'class="result"' in send_request(url, "explain", values)


def test_nobody_waits():
    """The work of a visitor who left ends at its next step."""
    import gradio

    from spinformer.app.controls import VisitorLeftError, guarded, telling

    event = SimpleNamespace(alive=True)
    page = SimpleNamespace(_queue=SimpleNamespace(event_ids_to_events={"x": event}))
    told = []
    tokens = [gradio.context.LocalContext.blocks.set(page), gradio.context.LocalContext.event_id.set("x")]
    try:
        tell = telling(gradio, lambda share, desc: told.append((share, desc)), "rows")
    finally:
        gradio.context.LocalContext.blocks.reset(tokens[0])
        gradio.context.LocalContext.event_id.reset(tokens[1])
    tell(1, 4)
    assert told == [(0.25, "1 of 4 rows")]
    event.alive = False
    with pytest.raises(VisitorLeftError):
        tell(2, 4)
    assert "Nobody waited" in guarded(lambda: tell(2, 4))()
