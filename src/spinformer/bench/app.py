"""The web page under load: many visitors at once, each asking again as soon as it is answered.

The server is the command `spinformer app` with its default model, in a process of its own; visitors are threads that
speak HTTP as the page does: join the queue, wait for the answer. Whatever is not a result is an error.
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
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spinformer.models.shipped import default_model
from spinformer.results import sha256

USERS, SECONDS = 20, 60
# Of the requests, those to the attractor.
SHARE = 0.2
PATIENCE = 120
PAIRS = (
    ("A man sleeps on a bench in the park.", "The man is awake."),
    ("Two dogs play in the snow while a woman watches them.", "Some animals are outside."),
    ("A woman plays the violin.", "The woman is famous and everybody in the hall came to hear her."),
    ("Three children are eating ice cream.", "Nobody is eating."),
)


def run(seed: int) -> dict[str, Any]:
    """Twenty visitors for a minute; the bar is no error."""
    with server() as url:
        ask(url, "watch", _picture(random.Random(seed)))  # trains the attractor
        outcome = hammer(url, USERS, SECONDS, seed)
    weights = Path(default_model()) / "model.safetensors"
    model = {"model_sha256": sha256(weights)} if weights.is_file() else {}
    return outcome | model | {"passed": outcome["errors"] == 0}


@contextmanager
def server(*options: str) -> Iterator[str]:
    """The address of a page that `spinformer app` serves as long as the context lasts."""
    command = [sys.executable, "-m", "spinformer", "app", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = []
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.strip())
            if "http://" in line:
                break
        else:
            raise OSError(f"the server did not start: {said[-1] if said else 'it said nothing'}")
        threading.Thread(target=process.stdout.read, daemon=True).start()  # lest it waits for a reader
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
    """What the visitors met with."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def hammer(url: str, users: int, seconds: float, seed: int = 0) -> dict[str, Any]:
    """`users` visitors ask for `seconds`; requests, errors and how long answers took, in seconds."""
    visits, until = Visits(), time.monotonic() + seconds
    threads = [
        threading.Thread(target=_visit, args=(url, until, random.Random(seed * users + k), visits))
        for k in range(users)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = sorted(visits.seconds)
    places = {f"p{share}": taken[min(len(taken) - 1, share * len(taken) // 100)] for share in (50, 95) if taken}
    return {
        "users": users,
        "seconds": seconds,
        "requests": len(taken) + len(visits.errors),
        "errors": len(visits.errors),
        "first_errors": visits.errors[:3],
        "per_second": len(taken) / seconds,
        **places,
    }


def _visit(url: str, until: float, draw: random.Random, visits: Visits) -> None:
    while time.monotonic() < until:
        start = time.monotonic()
        try:
            if draw.random() < SHARE:
                page = ask(url, "watch", _picture(draw))
            else:
                page = ask(url, "explain", [*draw.choice(PAIRS), round(draw.uniform(0.1, 1), 2), 64])
            if 'class="result"' not in page:
                raise ValueError(page[:200])
        except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
            visits.errors.append(f"{type(error).__name__}: {error}")
        else:
            visits.seconds.append(time.monotonic() - start)


def _picture(draw: random.Random) -> list[Any]:
    stroke = "".join("ff" if 8 <= k % 28 < 12 and 4 <= k // 28 < 24 else "00" for k in range(784))
    return [stroke, "hide patches", 0.4, 6, 0.9, draw.randrange(1000)]


def ask(url: str, name: str, data: list[Any]) -> str:
    """What the page answers to one request, as HTML."""
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


_known: dict[tuple[str, str], int] = {}


def _function(url: str, name: str) -> int:
    """The number that the page gives to its function of this name."""
    if (url, name) not in _known:
        found = json.loads(_fetch(url, "GET", "/config"))["dependencies"]
        _known[url, name] = next(entry["id"] for entry in found if entry["api_name"] == name)
    return _known[url, name]


def _fetch(url: str, method: str, path: str, body: str | None = None) -> str:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    if answer.status != 200:
        raise OSError(f"{method} {path} answered {answer.status}: {text[:200]}")
    return text
