"""The parts of the torture against the web page, in small: one server of `spinformer app`, with a tiny model."""

import random
from collections import deque

import pytest

pytest.importorskip("gradio")

from research.benchmarks import app
from research.benchmarks.app import Served, server
from research.torture import clients, sessions, visitors
from research.torture.findings import Plan
from research.torture.page_client import Reply, defects
from research.torture.page_requests import hostile_requests
from research.torture.page_values import ask, hostile_questions
from tests.app.conftest import save_model

SMALL = Plan(scale=0.01)


@pytest.fixture(scope="module")
def page(encoder, tmp_path_factory):
    folder = save_model(encoder, tmp_path_factory.mktemp("checkpoints") / "tiny")
    with server("--model", str(folder)) as served:
        yield served


@pytest.mark.slow
def test_hostile_clients(page):
    found = clients.attack(page, SMALL)
    assert found.failures == []
    assert len(found.cases) == 14
    assert sum(found.cases.values()) > 120


@pytest.mark.slow
def test_a_crowd_of_visitors(page, monkeypatch):
    monkeypatch.setattr(app, "SHARE", 0)  # nobody asks the attractor, which would have to be trained
    found = visitors.crowd(page, Plan(scale=0.02))
    assert found.failures == []
    assert found.cases["visitors"] == 4
    assert found.figures["per_second"] > 0
    assert 100 < found.figures["peak_mb"] < 4000


@pytest.mark.slow
def test_sessions_do_not_add_up(page):
    found = sessions.visit(page, SMALL)
    assert found.failures == []
    assert sum(found.cases.values()) == 120 + 40
    assert set(found.cases) == {"ask", "leave", "forget", "open"}
    assert found.figures["bound_mb"] < 9


def test_there_are_enough_hostile_requests():
    cases = [*hostile_requests(0), *hostile_questions(0, ["explain", "explain_1", "watch"])]
    assert len(cases) > 5 * clients.AT_LEAST
    assert len({(case.kind, case.name) for case in cases}) > 0.95 * len(cases)
    assert [case.name for case in hostile_requests(1)] == [case.name for case in hostile_requests(1)]
    assert [case.name for case in hostile_requests(1)] != [case.name for case in hostile_requests(2)]


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("addresses", Reply(200, "", "", True, 0.0)),
        ("addresses", Reply(404, "", "root:x:0:0", True, 0.0)),
        ("headers", Reply(500, "", "", True, 0.0)),
        ("protocols", Reply(200, "", "", False, 9.0)),
        ("hosts", Reply(200, "", "http://evil.example", True, 0.0)),
        ("origins", Reply(200, "access-control-allow-origin: null", "", True, 0.0)),
    ],
)
def test_wrong_answers_are_noticed(kind, reply):
    first = next(case for case in hostile_requests(0) if case.kind == kind)
    assert first.wrong(reply)
    assert not first.wrong(Reply(400, "", "{}", True, 0.0))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('<div class="message" role="alert">Something went wrong on the server.</div>', "the sentence for a defect"),
        ("<p>fine</p>", "neither a result nor a sentence"),
        ('<div class="result"><script>alert(1)</script></div>', "elements that come from the values: ['script']"),
    ],
)
def test_wrong_results_are_noticed(monkeypatch, answer, said):
    from research.torture import page_values

    monkeypatch.setattr(page_values, "functions", lambda url: {"explain": 0})
    monkeypatch.setattr(page_values, "join_queue", lambda *args: "session")
    monkeypatch.setattr(page_values, "read_answer", lambda *args: answer)
    monkeypatch.setattr(page_values, "_usual", lambda *args: ({"div", "div class"}, set()))
    (question, *_) = hostile_questions(0, ["explain"])
    assert said in ask("http://nowhere", question)


def test_what_a_server_prints_is_judged():
    lines = deque(["WARNING:  Invalid HTTP request received.\n"])
    assert defects(Served("", 0, lines), 0) == (None, 1)
    for bad in ("Traceback (most recent call last):\n", "ValueError: x\n", "a \x1b[31m\n"):
        assert defects(Served("", 0, deque([*lines, bad])), 1)[0] == f"it printed {bad!r}"


def test_a_slope_is_fitted():
    generator = random.Random(0)
    points = [(x, 0.2 * x + generator.uniform(-1, 1)) for x in range(0, 1000, 50)]
    assert sessions._slope(points) == pytest.approx(0.2, abs=0.01)
