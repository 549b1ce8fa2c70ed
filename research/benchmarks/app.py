"""The web page under load: many visitors at once, each of whom asks again as soon as an answer comes.

The server is the command `spinformer app` with its default model, in a process of its own. Visitors are threads that
speak HTTP as the page does: join the queue, wait for the answer. Any answer that is not a result is an error, unless it
says that the queue is full: that visitor asks again after a moment.
"""

import http.client
import json
import random
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spinformer._base.files import sha256
from spinformer.models.shipped import default_model

USERS, SECONDS = 20, 60
SHARE = 0.2  # of the requests that go to the attractor
PATIENCE = 120  # seconds to wait for an answer
MOMENT = (1.0, 3.0)  # seconds after which a visitor who was refused asks again, from and to
PAIRS = (
    ("A man sleeps on a bench in the park.", "The man is awake."),
    ("Two dogs play in the snow while a woman watches them.", "Some animals are outside."),
    ("A woman plays the violin.", "The woman is famous and everybody in the hall came to hear her."),
    ("Three children are eating ice cream.", "Nobody is eating."),
)


def run(seed: int) -> dict[str, Any]:
    """Twenty visitors for a minute; passed if there was no error, and nobody was refused."""
    with server() as page:
        send_request(page.url, "watch", picture(random.Random(seed)))  # trains the attractor
        outcome = load_test(page.url, USERS, SECONDS, seed)
    weights = Path(default_model()) / "model.safetensors"
    model = {"model_sha256": sha256(weights)} if weights.is_file() else {}
    return outcome | model | {"passed": outcome["errors"] == outcome["refused"] == 0}


@dataclass(frozen=True)
class Served:
    """A page that is served: its address, the number of its process, and the last lines that it printed."""

    url: str
    pid: int
    lines: deque[str]


class BusyError(OSError):
    """The queue is full."""


@contextmanager
def server(*options: str) -> Iterator[Served]:
    """Serve the page by `spinformer app` inside the context."""
    command = [sys.executable, "-m", "spinformer", "app", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="backslashreplace"
    )
    try:
        lines: deque[str] = deque(maxlen=10_000)
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "http://" in line:
                break
        else:
            raise OSError(f"the server did not start: {lines[-1].strip() if lines else 'it printed nothing'}")
        threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True).start()
        yield Served(next(word for word in line.split() if word.startswith("http://")), process.pid, lines)
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass
class Visits:
    """Seconds of each answer, how many requests were refused, and errors."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    errors: list[str] = field(default_factory=list)


def load_test(url: str, users: int, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Let this many users send requests for this many seconds; counts requests and errors, and times answers."""
    visits, until = Visits(), time.monotonic() + seconds
    threads = [
        threading.Thread(target=_visit, args=(url, until, random.Random(seed * users + k), visits))
        for k in range(users)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times = sorted(visits.seconds)
    percentiles = {f"p{share}": times[min(len(times) - 1, share * len(times) // 100)] for share in (50, 95) if times}
    return {
        "users": users,
        "seconds": seconds,
        "requests": len(times) + visits.refused + len(visits.errors),
        "refused": visits.refused,
        "errors": len(visits.errors),
        "first_errors": visits.errors[:3],
        "per_second": len(times) / seconds,
        **percentiles,
    }


def _visit(url: str, until: float, generator: random.Random, visits: Visits) -> None:
    while time.monotonic() < until:
        start = time.monotonic()
        try:
            if generator.random() < SHARE:
                page = send_request(url, "watch", picture(generator))
            else:
                temperature = round(generator.uniform(0.1, 1), 2)
                page = send_request(url, "explain", [*generator.choice(PAIRS), temperature, 64, -1, -1])
            if 'class="result"' not in page:
                raise ValueError(page[:200])
        except BusyError:
            visits.refused += 1
            time.sleep(generator.uniform(*MOMENT))
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            visits.errors.append(f"{type(error).__name__}: {error}")
        else:
            visits.seconds.append(time.monotonic() - start)


def picture(generator: random.Random) -> list[Any]:
    """What a visitor sends who draws a stroke: values for the function `watch`."""
    stroke = "".join("ff" if 8 <= k % 28 < 12 and 4 <= k // 28 < 24 else "00" for k in range(784))
    return [stroke, "hide patches", 0.4, 6, 0.9, generator.randrange(1000)]


def send_request(url: str, name: str, data: list[Any]) -> str:
    """Send one request to a function of the page; returns the answer, as HTML."""
    return read_answer(url, join_queue(url, functions(url)[name], data))


def join_queue(url: str, function: int, data: list[Any]) -> str:
    """Send the values for a function of the page; returns the name of the session, which is new."""
    session = f"{random.SystemRandom().getrandbits(48):x}"
    body = {"data": data, "fn_index": function, "session_hash": session, "event_data": None}
    fetch(url, "POST", "/gradio_api/queue/join", json.dumps(body))
    return session


def read_answer(url: str, session: str) -> str:
    """Wait for the answer of a session and return it, as HTML."""
    for line in fetch(url, "GET", f"/gradio_api/queue/data?session_hash={session}").splitlines():
        event = json.loads(line.removeprefix("data:")) if line.startswith("data:") else {}
        if event.get("msg") == "process_completed":
            if not event["success"]:
                raise ValueError(f"the server answered with an error: {event['output']}")
            return str(event["output"]["data"][0])
    raise ValueError("the server ended the answer before its result")


@cache
def functions(url: str) -> dict[str, int]:
    """The page's functions by name, each with its number; those that run in the browser alone are left out."""
    listed = json.loads(fetch(url, "GET", "/config"))["dependencies"]
    return {entry["api_name"]: int(entry["id"]) for entry in listed if entry["backend_fn"]}


def fetch(url: str, method: str, path: str, body: str | None = None) -> str:
    """Send one request and return the text of its answer; any status but 200 is an OSError."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    if answer.status == 503 and "Queue is full" in text:
        raise BusyError(text)
    if answer.status != 200:
        raise OSError(f"{method} {path} answered {answer.status}: {text[:200]}")
    return text
