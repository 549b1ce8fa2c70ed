"""Connections to the web page that never end: unfinished requests, bodies without end, answers that nobody takes."""

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from research.benchmarks.app import fetch, functions, join_queue
from research.torture.findings import Findings
from research.torture.page_bodies import VALUES
from research.torture.page_client import ANSWER, JOIN, LARGEST, Exchange, exchange, join, ordinary_visitor, request
from spinformer.app import limits

HELD = 450  # connections at once: more than the server takes
HEAD = f"POST {JOIN} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
KEEP = [("Connection", "keep-alive")]
# Unfinished requests, each of which must be closed in time.
UNFINISHED = {
    "nothing": b"",
    "a byte": b"G",
    "a line": b"GET / HTTP/1.1\r\n",
    "a header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    "a long header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 60_000,
    "a body": HEAD + b"Content-Length: 1000\r\n\r\n{",
    "no body": HEAD + b"Content-Length: 1\r\n\r\n",
    "a body that is read by nobody": b"GET /config HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    "a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{",
    "a body after a request": request("/robots.txt", headers=KEEP) + HEAD + b"Content-Length: 1000\r\n\r\n{",
    "a header after a request": request("/robots.txt", headers=KEEP) + b"GET / HTTP/1.1\r\nHost: ",
    "a finished request": request("/robots.txt", headers=KEEP),
}


@dataclass
class Held:
    """A connection that the server must end: what it is, after how many seconds at the latest, and whether this side
    reads what comes until then."""

    name: str
    exchange: Exchange
    patience: float
    reads: bool = True


def hold(url: str, count: int, found: Findings) -> list[Held]:
    """Open `count` connections at once that finish nothing, and look whether visitors are still served."""
    names = list(UNFINISHED)
    held = []
    for number in range(count):
        name = names[number % len(names)]
        held.append(Held(f"an unfinished request ({name})", Exchange(url, UNFINISHED[name]), limits.ARRIVAL + 5))
        found.count("connections")
    for moment in (0.0, limits.GRACE, 1.0):
        time.sleep(moment)
        start, wrong = time.monotonic(), ordinary_visitor(url)
        seconds = time.monotonic() - start
        found.expect(wrong is None, f"while {count} requests were unfinished a visitor was not served: {wrong}")
        found.expect(seconds < 5, f"while {count} requests were unfinished a visitor waited for {seconds:.1f} s")
    return held


def hold_answers(url: str, count: int, found: Findings) -> list[Held]:
    """Open `count` connections that ask for much and take nothing of it."""
    script = re.findall(r"assets/[\w.-]+\.js", fetch(url, "GET", "/"))[0]
    asked = request(f"/{script}", headers=KEEP) * (2 * LARGEST // len(fetch(url, "GET", f"/{script}")))
    held = []
    for _ in range(count):
        held.append(Held("an answer that nobody takes", Exchange(url, asked, buffer=2048), limits.TAKING + 10, False))
        found.count("connections")
    wrong = ordinary_visitor(url)
    found.expect(wrong is None, f"while {count} answers were not taken a visitor was not served: {wrong}")
    return held


def end(held: list[Held], found: Findings) -> None:
    """Wait until the server has ended each connection, no longer than each may last."""
    for one in sorted(held, key=lambda one: one.reads, reverse=True):
        patience = one.patience
        if not one.reads:  # by then the server has given it up: the rest of the answer does not come
            time.sleep(max(one.exchange.start + patience - time.monotonic(), 0))
            patience = time.monotonic() - one.exchange.start + 5
        reply = one.exchange.read(patience)
        found.expect(reply.ended, f"{one.name} was open after {patience:.0f} s")
        found.expect(reply.status < 500, f"{one.name} was answered by {reply}")
        one.exchange.close()


def drip(url: str, found: Findings) -> None:
    """Send requests byte by byte for ever: the server must end them in time, or answer."""
    ways: dict[str, tuple[bytes, bytes]] = {
        "a header in drops": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"a"),
        "a body in drops": (HEAD + b"Content-Length: 60000\r\n\r\n", b" "),
        "a chunked body in drops": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        "a body without end": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"ffff\r\n" + b" " * 0xFFFF + b"\r\n"),
        "headers without end": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n" * 500),
    }
    _together([partial(_drip, url, name, begin, drop, found) for name, (begin, drop) in ways.items()])


def _drip(url: str, name: str, begin: bytes, drop: bytes, found: Findings) -> None:
    sending = Exchange(url, begin)
    found.count("connections")
    seconds, pause = 0.0, 0.2 if len(drop) < 100 else 0.01
    try:
        while seconds < limits.ARRIVAL + 5:
            sending.connection.sendall(drop)
            time.sleep(pause)
            seconds = time.monotonic() - sending.start
    except OSError:
        pass
    finally:
        sending.close()
    found.expect(seconds < limits.ARRIVAL + 5, f"{name} was still taken after {seconds:.0f} s")


def streams(url: str, found: Findings) -> None:
    """Ask for one session's answers many times at once: one may have them, and none may wait for ever."""
    session = join_queue(url, functions(url)["explain"], [*VALUES[:3], limits.SAMPLES[1], -1, -1])
    statuses: list[int] = []
    asked = request(f"{ANSWER}?session_hash={session}")
    _together([lambda: statuses.append(exchange(url, asked, limits.ARRIVAL + 15).status) for _ in range(8)])
    found.count("connections", 8)
    found.expect(statuses.count(200) == 1, f"one session's answers, asked for 8 times at once, got {sorted(statuses)}")
    found.expect(set(statuses) <= {200, 404, 409}, f"one session's answers, asked for 8 times, got {sorted(statuses)}")
    left = exchange(url, join(VALUES, functions(url)["explain"], "torture-left"))
    found.expect(left.status == 200 and "event_id" in json.loads(left.text or "{}"), f"a request was answered {left}")
    leaving = Exchange(url, request(f"{ANSWER}?session_hash=torture-left"))
    leaving.close()  # before the answer came
    wrong = ordinary_visitor(url)
    found.expect(wrong is None, f"after a visitor left before the answer, another was not served: {wrong}")


def _together(tasks: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
