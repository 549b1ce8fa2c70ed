"""Visitors who mean harm: unknown functions, values of any kind, answers that nobody reads, sessions without end."""

import json
import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("gradio")

from research.benchmarks.app import fetch as fetch_ok
from research.benchmarks.app import functions, join_queue, read_answer, send_request
from research.torture.page_client import ANSWER, Exchange, exchange, join, request
from spinformer.app import Classifier, application, build, limits
from tests.app.test_served import fetch

VALUES = ["a dog", "a cat", 0.25, 64, -1, -1]


@pytest.mark.slow
@pytest.mark.parametrize("number", [10**6, -1, "0", None, True, 0.5, [0]])
def test_an_unknown_function_is_refused(url, number):
    reply = exchange(url, join(VALUES, number, "x"))
    assert (reply.status, json.loads(reply.text)) == (400, {"detail": "Expected the number of a function of the page."})


@pytest.mark.slow
@pytest.mark.parametrize("session", [None, "", "x" * 65, "a b", "../x", {"a": 1}, 3, "\u00e9"])
def test_a_session_has_a_short_name(url, session):
    numbers = [entry["id"] for entry in json.loads(fetch(url, "/config")[1])["dependencies"]]
    refused = set()
    for number in numbers:
        reply = exchange(url, join(["a"], number, session))
        assert reply.status == 400
        refused.add(json.loads(reply.text)["detail"])
    assert "Expected the name of a session, of letters and digits." in refused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "place", "value", "said"),
    [
        ("explain", 0, "a \ud800 dog", "The premise holds half a character: please write it again."),
        ("explain", 2, "hot", "The temperature must be a number from 0.05 to 2."),
        ("explain", 3, 10_000, "The number of samples must be from 64 to 2048; got 10000."),
        ("explain", 3, 10**400, "The number of samples must be a number from 64 to 2048."),
        ("watch", 1, "burn", "The damage must be one of: hide patches, add noise."),
        ("watch", 5, None, "The seed must be a number from 0 to 2.14748e+09."),
    ],
)
def test_any_value_is_answered_in_a_sentence_and_prints_nothing(url, capfd, name, place, value, said):
    """Gradio would refuse some with a traceback in the server's output."""
    values = {"explain": VALUES, "watch": ["ff" * 784, "hide patches", 0.4, 1, 0.9, 0]}[name]
    answer = send_request(url, name, [*values[:place], value, *values[place + 1 :]])
    assert answer == f'<div class="message" role="alert">{said}</div>'
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_what_else_a_request_says_is_not_passed_on(url, capfd):
    reply = exchange(url, join(VALUES, 0, "more", trigger_id=float("nan"), event_data={"a": float("nan")}))
    assert reply.status == 200
    assert 'class="result"' in read_answer(url, "more")
    assert exchange(url, join(VALUES[:1])).text == '{"detail": "Expected 6 values; got 1."}'
    for route in ("cancel", "reset"):  # the page calls neither; Gradio answers NaN by 500
        assert exchange(url, request(f"/gradio_api/{route}", "POST", b'{"session_hash": NaN}')).status == 404
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_answers_that_nobody_waits_for(url, capfd):
    """Gradio would send a stream for an unknown session, print a traceback, and keep a second stream for ever."""
    for asked in (f"{ANSWER}?session_hash=nobody", ANSWER, f"{ANSWER}?session_hash=a&session_hash=b"):
        reply = exchange(url, request(asked))
        assert (reply.status, json.loads(reply.text)) == (404, {"detail": "This session waits for no answer."})
    session = join_queue(url, functions(url)["explain"], [*VALUES[:3], 2048, -1, -1])
    asked, replies = request(f"{ANSWER}?session_hash={session}"), []
    threads = [threading.Thread(target=lambda: replies.append(exchange(url, asked))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(reply.status for reply in replies)[0] == 200
    assert {reply.status for reply in replies} <= {200, 404, 409}
    assert sum("process_completed" in reply.text for reply in replies) == 1
    assert fetch(url, "/gradio_api/heartbeat/x")[0] == 404  # a stream without end; the page asks for none
    assert json.loads(fetch(url, "/config")[1])["connect_heartbeat"] is False
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_visitor_who_leaves_is_forgotten(url, capfd):
    session = join_queue(url, functions(url)["explain"], VALUES)
    leaving = Exchange(url, request(f"{ANSWER}?session_hash={session}"))
    leaving.close()
    for _ in range(100):
        if exchange(url, request(f"{ANSWER}?session_hash={session}")).status == 404:
            break
        time.sleep(0.05)
    else:
        pytest.fail("the session was remembered")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Host", "X-Forwarded-Host"])
@pytest.mark.parametrize("host", ["\x80", "localhost:99999999", "localhost:80@evil.example", '"><script>', "a b", ""])
def test_a_host_is_a_name(url, name, host):
    """Gradio makes addresses of both, and fails at some only when a request is worked on."""
    assert exchange(url, request("/config", headers=[(name, host)])).status == 400


@pytest.mark.slow
def test_addresses_of_others_are_not_kept(url):
    """Behind a proxy the page must know under which name it is served, but no cache may keep that."""
    reply = exchange(url, request("/config", headers=[("X-Forwarded-Host", "page.example")]))
    assert '"root":"http://page.example"' in reply.text
    assert "cache-control: no-store" in reply.head
    assert "evil" not in exchange(url, request("/config", headers=[("X-Gradio-Server", "http://evil.example")])).text


def test_sessions_are_bounded(model_folder, monkeypatch):
    """A session takes 0.2 MB; the oldest is given back."""
    monkeypatch.setattr(limits, "SESSIONS", 20)
    blocks = build(Classifier.load(str(model_folder)))
    application(blocks)
    holder, queue = blocks.state_holder, blocks._queue
    for number in range(3 * limits.SESSIONS):
        holder[f"visitor{number}"]
        queue.pending_messages_per_session[f"visitor{number}"] = number
        queue.pending_event_ids_session[f"visitor{number}"] = {number}
        if number == 0:
            queue.event_ids_to_events[number] = SimpleNamespace(alive=True)  # still worked on
    assert len(holder.session_data) == len(holder.time_last_used) == limits.SESSIONS
    assert f"visitor{3 * limits.SESSIONS - 1}" in holder
    for kept in (queue.pending_messages_per_session, queue.pending_event_ids_session):
        assert len(kept) == limits.SESSIONS
        assert list(kept)[:2] == ["visitor0", f"visitor{2 * limits.SESSIONS + 1}"]
        del kept["visitor0"], kept["visitor0"]  # Gradio may do so from two tasks
    assert queue.ANALYTICS_MAX_EVENTS == limits.SESSIONS


@pytest.mark.slow
def test_nothing_stays_of_a_session_that_was_answered(model_folder):
    from tests.app.conftest import serving

    blocks = build(Classifier.load(str(model_folder)))
    with serving(application(blocks)) as address:
        fetch_ok(address, "GET", "/")
        for _ in range(3):
            send_request(address, "explain", VALUES)
        join_queue(address, functions(address)["explain"], VALUES)
        assert len(blocks._queue.pending_messages_per_session) == 1
        assert len(blocks._queue.pending_event_ids_session) == 1
