"""What the parts against the web page share: raw requests, the server's memory and output, an ordinary visitor."""

import json
import re
import socket
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from research.benchmarks.app import Served, fetch, send_request
from spinformer.app import limits
from spinformer.app.page import TITLE

JOIN, ANSWER = "/gradio_api/queue/join", "/gradio_api/queue/data"
PATIENCE = limits.ARRIVAL + 5  # seconds after which an unfinished request must be closed, and any other answered
LARGEST = 1 << 24  # bytes that are read of an answer
# In the output of a server: what only a defect prints, and characters that a terminal would obey.
DEFECT = re.compile(r"Traceback|Exception in |^\w*Error\b|returned without|[\x00-\x08\x0b-\x1f\x7f-\x9f]", re.MULTILINE)


@dataclass(frozen=True)
class Reply:
    """An answer: its status (0 where the connection ended without one), its head and its body as text, whether the
    server ended the connection, and the seconds until then."""

    status: int
    head: str
    text: str
    ended: bool
    seconds: float

    def __str__(self) -> str:
        end = "" if self.ended else ", and the connection stayed open"
        return f"{self.status or 'no answer'} {self.text[:120]!r}{end}"


def connect(url: str, sent: bytes = b"", buffer: int | None = None) -> socket.socket:
    """Open a connection and send bytes. buffer: how many bytes of an answer the system may take in advance."""
    where = urlsplit(url)
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(PATIENCE)
    connection.connect((where.hostname, where.port))
    with suppress(ConnectionError):  # refused before all of it was sent
        connection.sendall(sent)
    return connection


class Exchange:
    """Bytes that were sent to the page, and what comes back; to be closed."""

    def __init__(self, url: str, sent: bytes = b"", buffer: int | None = None) -> None:
        self.start = time.monotonic()
        self.connection = connect(url, sent, buffer)
        self.received, self.ended, self.seconds = b"", False, 0.0

    def read(self, patience: float = PATIENCE) -> Reply:
        """What came until the server ended the connection, or until `patience` seconds after it was opened."""
        while not self.ended and len(self.received) < LARGEST:
            self.connection.settimeout(max(self.start + patience - time.monotonic(), 0.001))
            try:
                part = self.connection.recv(1 << 16)
            except TimeoutError:
                break
            except ConnectionError:
                part = b""
            self.received += part
            self.ended, self.seconds = not part, time.monotonic() - self.start
        head, _, body = self.received.partition(b"\r\n\r\n")
        found = re.match(rb"HTTP/1\.[01] (\d{3})", head)
        status = int(found[1]) if found else 0
        return Reply(status, head.decode("latin-1"), body.decode(errors="replace"), self.ended, self.seconds)

    def close(self) -> None:
        """End the connection from this side."""
        self.connection.close()


def exchange(url: str, sent: bytes, patience: float = PATIENCE) -> Reply:
    """Send bytes and read what comes back."""
    with closing(Exchange(url, sent)) as sending:
        return sending.read(patience)


def request(
    path: str = "/", method: str = "GET", body: bytes | None = None, headers: Iterable[tuple[str, str]] = ()
) -> bytes:
    """The bytes of a request, with a host, the length of the body and `Connection: close` unless `headers` has them."""
    given = list(headers)
    names = {name.lower() for name, _ in given}
    usual = [("Host", "localhost"), ("Connection", "close")]
    if body is not None:
        usual += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in usual if n.lower() not in names)]
    lines += [f"{name}: {value}" for name, value in given]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def join(data: Any, function: Any = 0, session: Any = "torture", **more: Any) -> bytes:
    """The bytes of a request that joins the queue."""
    content = {"data": data, "fn_index": function, "session_hash": session, **more}
    return request(JOIN, "POST", json.dumps(content).encode())


def ordinary_visitor(url: str) -> str | None:
    """Open the page and ask for an explanation, as any visitor would; returns what went wrong."""
    start = time.monotonic()
    try:
        if TITLE not in fetch(url, "GET", "/"):
            return "the page has no title"
        answer = send_request(url, "explain", ["A man sleeps.", "Nobody.", 0.25, 64, -1, -1])
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    if 'class="result"' not in answer:
        return f"the answer was {answer[:120]!r}"
    seconds = time.monotonic() - start
    return f"it took {seconds:.1f} s" if seconds > PATIENCE else None


def defects(page: Served, seen: int) -> tuple[str | None, int]:
    """The first line that the server printed after `seen` lines and should not have, and how many lines there are."""
    time.sleep(0.01)  # for the line to arrive
    lines = list(page.lines)
    bad = [line for line in lines[seen:] if DEFECT.search(line.rstrip("\n"))]
    return (f"it printed {bad[-1][:200]!r}" if bad else None), len(lines)


def resident(pid: int, peak: bool = False) -> float:
    """Resident memory of a process in MB, now or at its peak."""
    name = "VmHWM:" if peak else "VmRSS:"
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(name))) / 1024
