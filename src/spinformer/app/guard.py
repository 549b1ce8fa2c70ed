"""Which requests the server answers: those for the page, its assets and its queue; all others get 404.

Gradio brings routes for files, uploads, proxies, documentation and more. The page needs none of them.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from spinformer.app import limits
from spinformer.app.sessions import Sessions

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

PAGE = re.compile(r"/(config|theme\.css|gradio_api/theme\.css|favicon\.ico|robots\.txt)?")
ASSET = re.compile(r"/(assets|static)(/[A-Za-z0-9_.@~+-]{1,100}){1,8}")
STARTUP, JOIN, ANSWER = "/gradio_api/startup-events", "/gradio_api/queue/join", "/gradio_api/queue/data"
SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Headers from which Gradio makes addresses: they must name a host, and nothing else.
HOSTS = (b"host", b"x-forwarded-host")
HOST = re.compile(rb"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


@dataclass(frozen=True)
class Accepts:
    """What a function of the page takes: how many values, bytes of a request, and whether it works for long."""

    values: int
    size: int = limits.BYTES
    long: bool = False


class Guard:
    """An ASGI application before another: refuses requests that the page does not need, and adds security headers.

    functions: the numbers of the page's functions, each with what it takes; sessions: those who wait for an answer;
    framed_by: hosts whose pages may show this one in a frame, as in a Content-Security-Policy.
    """

    def __init__(
        self, app: Application, functions: Mapping[int, Accepts], sessions: Sessions, framed_by: str = "'self'"
    ) -> None:
        self.app, self.functions, self.sessions = app, functions, sessions
        policy = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; object-src 'none'; base-uri 'self'"
        self.headers = [
            (b"content-security-policy", f"{policy}; form-action 'self'; frame-ancestors {framed_by}".encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
        ]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass on, or answer 400, 404, 409, 413 or 503."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = [(name, value) for name, value in scope["headers"] if name != b"x-gradio-server"]
        hosts = [host.strip() for name, value in headers if name in HOSTS for host in value.split(b",")]
        if not hosts or not all(map(HOST.fullmatch, hosts)):
            await _refuse(send, 400, "Expected the name of a host.")
            return
        scope = {**scope, "headers": headers}
        method, path = scope["method"], scope["path"]
        reading = method in ("GET", "HEAD")
        if reading and PAGE.fullmatch(path):
            scope["query_string"] = b""
            send = _adding([(b"cache-control", b"no-store")], send)  # it holds the address that this visitor used
        elif reading and (_asset(path) or path == STARTUP):
            pass
        elif method == "GET" and path == ANSWER:
            await self._answer(scope, receive, _adding(self.headers, send))
            return
        elif method == "POST" and path == JOIN:
            try:
                receive = _replay(await self._join(receive), receive)
            except _RefusedError as refused:
                await _refuse(send, refused.status, str(refused))
                return
        else:
            await _refuse(send, 404, "There is nothing here.")
            return
        await self.app(scope, receive, _adding(self.headers, send))

    async def _join(self, receive: Receive) -> bytes:
        """What is passed on of a request that joins the queue."""
        largest = max((accepts.size for accepts in self.functions.values()), default=limits.BYTES)
        body = await _body(receive, largest)
        if body is None:
            raise _RefusedError(413, f"A request may have {largest} bytes.")
        try:
            number, passed = _request(body, self.functions)
        except ValueError as error:
            raise _RefusedError(400, str(error)) from None
        accepts = self.functions[number]
        if len(body) > accepts.size:
            raise _RefusedError(413, f"A request may have {accepts.size} bytes.")
        if accepts.long and self.sessions.waiting_for_long() >= limits.LONG_WAITING:
            raise _RefusedError(503, "Others wait for refinements and files already. Please try again in a minute.")
        return passed

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass on a request for the answers of a session: one at a time, and only while there is one to wait for."""
        names = parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])
        session = names[0] if len(names) == 1 and SESSION.fullmatch(names[0]) else ""
        with suppress(TimeoutError):  # the last answer may be on its last bytes
            async with asyncio.timeout(limits.TURN):
                while session in self.sessions.reading:
                    await asyncio.sleep(limits.TURN / 20)
        if session in self.sessions.reading:
            await _refuse(send, 409, "The answers of this session are being sent already.")
        elif not self.sessions.waiting(session):
            await _refuse(send, 404, "This session waits for no answer.")
        else:
            scope["query_string"] = f"session_hash={session}".encode()
            stream = _Stream(receive, send, lambda: self.sessions.waiting(session))
            with self.sessions.read(session):
                await self.app(scope, stream.receive, stream.send)
            await stream.end()


def _adding(headers: list[tuple[bytes, bytes]], send: Send) -> Send:
    """A `send` that adds headers to the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *headers]}
        await send(message)

    return sending


class _Stream:
    """Both ends of an answer in parts. Once there is nothing to wait for, Gradio is told that the visitor left."""

    def __init__(self, receive: Receive, send: Send, waiting: Callable[[], bool]) -> None:
        self._receive, self._send, self._waiting = receive, send, waiting
        self._sending, self._open, self._left = False, False, False

    async def receive(self) -> Message:
        while True:
            with suppress(TimeoutError):
                return await asyncio.wait_for(self._receive(), limits.ARRIVAL)
            if not self._sending and not self._waiting():
                self._left = True
                return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._left:
            return
        self._sending = True
        try:
            await self._send(message)
        finally:
            self._sending = False
        self._open = message["type"] == "http.response.start" or bool(message.get("more_body"))

    async def end(self) -> None:
        """Send the last part, where Gradio did not."""
        if self._open:
            await self._send({"type": "http.response.body", "body": b""})


def _asset(path: str) -> bool:
    return bool(ASSET.fullmatch(path)) and ".." not in path


class _RefusedError(Exception):
    """A request that is not passed on."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def _body(receive: Receive, largest: int) -> bytes | None:
    """The full body of a request, None where it is too long."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > largest:
            return None
        if message["type"] != "http.request" or not message.get("more_body"):
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body that was read, then what follows it."""
    waiting = [body]

    async def receiving() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receiving


def _request(body: bytes, functions: Mapping[int, Accepts]) -> tuple[int, bytes]:
    """The function that a request is for, and what is passed on of it, and nothing else: values that are scalars (no
    files, no addresses to fetch from) and as many as the function takes, a function of the page, a session with a short
    name."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list) or not all(item is None or isinstance(item, str | int | float) for item in data):
        raise ValueError("Expected a list of texts, numbers and choices.")
    number, session = content.get("fn_index"), content.get("session_hash")
    if isinstance(number, bool) or not isinstance(number, int) or number not in functions:
        raise ValueError("Expected the number of a function of the page.")
    if not isinstance(session, str) or not SESSION.fullmatch(session):
        raise ValueError("Expected the name of a session, of letters and digits.")
    if len(body) <= functions[number].size and len(data) != functions[number].values:
        raise ValueError(f"Expected {functions[number].values} values; got {len(data)}.")
    return number, json.dumps({"data": data, "fn_index": number, "session_hash": session}).encode()


async def _refuse(send: Send, status: int, text: str) -> None:
    body = json.dumps({"detail": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
