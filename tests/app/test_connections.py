"""Connections that wait for their client, on a server with short limits: each ends in time, and few may wait."""

import socket
import threading
import time
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")

from research.torture.page_client import Exchange, connect, exchange, request
from spinformer.app import limits
from tests.app.conftest import serving

KEEP = [("Connection", "keep-alive")]
BODY = b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
LARGE = b"x" * (8 << 20)
UNFINISHED = {
    "nothing": b"",
    "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "body": BODY,
    "body after a request": request(headers=KEEP) + BODY,
    "headers after a request": request(headers=KEEP) + b"GET / HT",
}


async def application(scope, receive, send):
    """Answers at once; /large with more than any system takes in advance."""
    body = LARGE if scope["path"] == "/large" else b"here"
    head = [(b"content-length", str(len(body)).encode())]
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def patience():
    """Seconds for requests to arrive and for answers to be taken."""
    return 0.8


@pytest.fixture
def address(monkeypatch, patience):
    """A server with short limits."""
    short = {"ARRIVAL": patience, "TAKING": patience, "UNFINISHED": 20, "UNTAKEN": 5, "BURST": 60, "GRACE": 0.3}
    for name, value in short.items():
        monkeypatch.setattr(limits, name, value)
    with serving(application) as found:
        yield found


def open_after(connection, seconds):
    """Whether the connection is still open then; what came is read."""
    until = time.monotonic() + seconds
    with suppress(ConnectionError):
        while True:
            connection.settimeout(max(until - time.monotonic(), 0.001))
            try:
                if not connection.recv(1 << 16):
                    return False
            except TimeoutError:
                return True
    return False


def test_a_request_must_arrive_in_time(address):
    with ExitStack() as stack:
        late = {name: stack.enter_context(connect(address, sent)) for name, sent in UNFINISHED.items()}
        time.sleep(limits.ARRIVAL / 2)
        assert all(open_after(connection, 0) for connection in late.values())
        start = time.monotonic()
        assert not any(open_after(connection, 3) for connection in late.values())
        assert time.monotonic() - start < 2


def test_a_long_answer_must_be_taken_in_time(address):
    with connect(address, request("/large"), buffer=2048) as slow:
        time.sleep(2 * limits.TAKING)
        assert not open_after(slow, 5)
    reply = exchange(address, request("/large"))
    assert (reply.status, len(reply.text), reply.ended) == (200, len(LARGE), True)


@pytest.mark.parametrize("patience", [60])
def test_few_may_take_nothing(address, patience):
    with ExitStack() as stack:
        slow = [stack.enter_context(connect(address, request("/large"), buffer=2048)) for _ in range(20)]
        time.sleep(3 * limits.GRACE)
        taken = []
        threads = [threading.Thread(target=lambda one=one: taken.append(_received(one))) for one in slow]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(count > len(LARGE) for count in taken) == limits.UNTAKEN


def _received(connection):
    count = 0
    with suppress(OSError):
        while part := connection.recv(1 << 20):
            count += len(part)
    return count


@pytest.mark.parametrize("patience", [60])
def test_of_many_that_wait_the_oldest_are_closed(address, patience):
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(address)) for _ in range(50)]
        assert all(open_after(connection, 0) for connection in waiting)  # they may be about to ask
        time.sleep(2 * limits.GRACE)
        assert [open_after(one, 0.01) for one in waiting] == [False] * 30 + [True] * 20
        assert exchange(address, request()).text == "here"


def test_a_crowd_that_comes_at_once_is_served(address):
    """More at once than may wait: none of them does, so none is closed."""
    where = urlsplit(address)
    with ExitStack() as stack:
        crowd = []
        for _ in range(60):
            one = stack.enter_context(socket.create_connection((where.hostname, where.port), timeout=5))
            one.sendall(request())
            crowd.append(one)
        assert all(one.recv(100).startswith(b"HTTP/1.1 200") for one in crowd)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["nothing", "headers", "body"])
def test_unfinished_requests_shut_nobody_out(url, part):
    with ExitStack() as stack:
        for _ in range(450):
            stack.enter_context(connect(url, UNFINISHED[part]))
        for wait in (0, limits.GRACE):
            time.sleep(wait)
            start = time.monotonic()
            assert exchange(url, request("/config")).status == 200
            assert time.monotonic() - start < 5


def test_a_connection_stays_for_the_next_request(address):
    keeping = Exchange(address, request(headers=KEEP) * 2 + request())
    assert keeping.read().text.count("here") == 3
    keeping.close()
