"""The web page under load: many visitors at once, each of whom asks again as soon as an answer comes.

The server is the command `spinformer app` with its default model, in a process of its own. Visitors are threads that
speak HTTP as the page does: join the queue, wait for the answer. Any answer that is not a result is an error.
"""

import http.client
import json
import random
import subprocess
import sys
import threading
import time
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
PAIRS = (
    ("A man sleeps on a bench in the park.", "The man is awake."),
    ("Two dogs play in the snow while a woman watches them.", "Some animals are outside."),
    ("A woman plays the violin.", "The woman is famous and everybody in the hall came to hear her."),
    ("Three children are eating ice cream.", "Nobody is eating."),
)


def run(seed: int) -> dict[str, Any]:
    """Twenty visitors for a minute; passed if there was no error."""
    with server() as url:
        send_request(url, "watch", _picture(random.Random(seed)))  # trains the attractor
        outcome = load_test(url, USERS, SECONDS, seed)
    weights = Path(default_model()) / "model.safetensors"
    model = {"model_sha256": sha256(weights)} if weights.is_file() else {}
    return outcome | model | {"passed": outcome["errors"] == 0}


@contextmanager
def server(*options: str) -> Iterator[str]:
    """Serve the page by `spinformer app` inside the context; gives its address."""
    command = [sys.executable, "-m", "spinformer", "app", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        lines = []
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.strip())
            if "http://" in line:
                break
        else:
            raise OSError(f"the server did not start: {lines[-1] if lines else 'it printed nothing'}")
        threading.Thread(target=process.stdout.read, daemon=True).start()  # so that it never waits for a reader
        yield next(word for word in line.split() if word.startswith("http://"))
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@dataclass
class Visits:
    """Seconds of each answer, and errors."""

    seconds: list[float] = field(default_factory=list)
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
        "requests": len(times) + len(visits.errors),
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
                page = send_request(url, "watch", _picture(generator))
            else:
                page = send_request(url, "explain", [*generator.choice(PAIRS), round(generator.uniform(0.1, 1), 2), 64])
            if 'class="result"' not in page:
                raise ValueError(page[:200])
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            visits.errors.append(f"{type(error).__name__}: {error}")
        else:
            visits.seconds.append(time.monotonic() - start)


def _picture(generator: random.Random) -> list[Any]:
    stroke = "".join("ff" if 8 <= k % 28 < 12 and 4 <= k // 28 < 24 else "00" for k in range(784))
    return [stroke, "hide patches", 0.4, 6, 0.9, generator.randrange(1000)]


def send_request(url: str, name: str, data: list[Any]) -> str:
    """Send one request to a function of the page; returns the answer, as HTML."""
    session = f"{random.SystemRandom().getrandbits(48):x}"
    body = {"data": data, "fn_index": _function(url, name), "session_hash": session, "event_data": None}
    _fetch(url, "POST", "/gradio_api/queue/join", json.dumps(body))
    for line in _fetch(url, "GET", f"/gradio_api/queue/data?session_hash={session}").splitlines():
        event = json.loads(line.removeprefix("data:")) if line.startswith("data:") else {}
        if event.get("msg") == "process_completed":
            if not event["success"]:
                raise ValueError(f"the server answered with an error: {event['output']}")
            return str(event["output"]["data"][0])
    raise ValueError("the server ended the answer before its result")


@cache
def _function(url: str, name: str) -> int:
    """The number that the page gives to its function of this name."""
    functions = json.loads(_fetch(url, "GET", "/config"))["dependencies"]
    return next(int(entry["id"]) for entry in functions if entry["api_name"] == name)


def _fetch(url: str, method: str, path: str, body: str | None = None) -> str:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    if answer.status != 200:
        raise OSError(f"{method} {path} answered {answer.status}: {text[:200]}")
    return text
