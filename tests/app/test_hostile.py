"""Visitors who mean harm: unfinished requests, unknown functions, sessions without end."""

import json
import socket
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest

pytest.importorskip("gradio")

from spinformer.app import Classifier, application, build, limits
from tests.app.test_served import fetch

PARTS = {
    "nothing": b"",
    "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "body": b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
}


def connect(url, sent):
    where = urlsplit(url)
    connection = socket.create_connection((where.hostname, where.port), timeout=10)
    connection.sendall(sent)
    return connection


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_unfinished_requests_shut_nobody_out(url, part):
    with ExitStack() as stack:
        for _ in range(450):
            stack.enter_context(connect(url, PARTS[part]))
        time.sleep(0.5)
        for _ in range(3):
            start = time.monotonic()
            assert fetch(url, "/config")[0] == 200
            assert time.monotonic() - start < 5


@pytest.mark.slow
def test_a_request_must_arrive_in_time(url):
    slow = {name: connect(url, sent) for name, sent in PARTS.items()}
    start = time.monotonic()
    for name, connection in slow.items():
        connection.settimeout(limits.ARRIVAL + 5)
        with connection, suppress(ConnectionResetError):
            assert connection.recv(100) == b"", name
    assert time.monotonic() - start < limits.ARRIVAL + 5
    keeping = connect(url, b"GET /config HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with keeping:
        assert keeping.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
@pytest.mark.parametrize("number", [10**6, -1, "0", None, True, 0.5, [0]])
def test_an_unknown_function_is_refused(url, number):
    body = json.dumps({"data": ["a", "b", 0.25, 64], "fn_index": number, "session_hash": "x"})
    status, text, _ = fetch(url, "/gradio_api/queue/join", "POST", body, **{"Content-Type": "application/json"})
    assert (status, json.loads(text)) == (400, {"detail": "Expected the number of a function of the page."})


@pytest.mark.slow
@pytest.mark.parametrize("session", [None, "", "x" * 65, "a b", "../x", {"a": 1}, 3])
def test_a_session_has_a_short_name(url, session):
    numbers = [entry["id"] for entry in json.loads(fetch(url, "/config")[1])["dependencies"]]
    refused = set()
    for number in numbers:
        body = json.dumps({"data": ["a"], "fn_index": number, "session_hash": session})
        status, text, _ = fetch(url, "/gradio_api/queue/join", "POST", body, **{"Content-Type": "application/json"})
        assert status == 400
        refused.add(json.loads(text)["detail"])
    assert "Expected the name of a session, of letters and digits." in refused


def test_sessions_are_bounded(model_folder):
    """A session takes 0.2 MB; the oldest is given back."""
    blocks = build(Classifier.load(str(model_folder)))
    application(blocks)
    holder = blocks.state_holder
    for number in range(3 * limits.SESSIONS):
        holder[f"visitor{number}"]
    assert len(holder.session_data) == len(holder.time_last_used) == limits.SESSIONS
    assert f"visitor{3 * limits.SESSIONS - 1}" in holder
