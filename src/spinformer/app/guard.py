"""Which requests the server answers: those for the page, its assets and its queue; all others get 404.

Gradio brings routes for files, uploads, proxies, documentation and more. The page needs none of them.
"""

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from spinformer.app import limits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

PAGE = re.compile(r"/(config|theme\.css|gradio_api/theme\.css|favicon\.ico|robots\.txt)?")
ASSET = re.compile(r"/(assets|static)(/[\w.@~+-]+)+")
EVENTS = re.compile(r"/gradio_api/(startup-events|queue/data|heartbeat/\w+)")
JOIN = "/gradio_api/queue/join"
SESSION = re.compile(r"[\w-]{1,64}")
DONE = re.compile(r"/gradio_api/(cancel|reset)")


class Guard:
    """An ASGI application before another: refuses requests that the page does not need, and adds security headers.

    functions: the numbers of the page's functions; framed_by: hosts whose pages may show this one in a frame, as in a
    Content-Security-Policy.
    """

    def __init__(self, app: Application, functions: frozenset[int], framed_by: str = "'self'") -> None:
        self.app, self.functions = app, functions
        policy = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; object-src 'none'; base-uri 'self'"
        self.headers = [
            (b"content-security-policy", f"{policy}; form-action 'self'; frame-ancestors {framed_by}".encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
        ]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Pass on, or answer 404, 405, 413 or 400."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        method, path = scope["method"], scope["path"]
        reading = method in ("GET", "HEAD")
        if reading and PAGE.fullmatch(path):
            scope = {**scope, "query_string": b""}
        elif reading and (_asset(path) or EVENTS.fullmatch(path)):
            pass
        elif method == "POST" and (path == JOIN or DONE.fullmatch(path)):
            body = await _body(receive)
            if body is None:
                await _refuse(send, 413, f"A request may have {limits.BYTES} bytes.")
                return
            refusal = _refusal(body, self.functions) if path == JOIN else None
            if refusal is not None:
                await _refuse(send, 400, refusal)
                return
            receive = _replay(body, receive)
        else:
            await _refuse(send, 404, "There is nothing here.")
            return
        await self.app(scope, receive, self._with_headers(send))

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *self.headers]}
            await send(message)

        return sending


def _asset(path: str) -> bool:
    return bool(ASSET.fullmatch(path)) and ".." not in path


async def _body(receive: Receive) -> bytes | None:
    """The full body of a request, None where it is too long."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > limits.BYTES:
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


def _refusal(body: bytes, functions: frozenset[int]) -> str | None:
    """Why a request is not passed on: its data must be scalars (no files, no addresses to fetch from), its function one
    of the page's, its session a short name."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, list) or not all(item is None or isinstance(item, str | int | float) for item in data):
        return "Expected a list of texts, numbers and choices."
    number, session = content.get("fn_index"), content.get("session_hash")
    if isinstance(number, bool) or not isinstance(number, int) or number not in functions:
        return "Expected the number of a function of the page."
    if not isinstance(session, str) or not SESSION.fullmatch(session):
        return "Expected the name of a session, of letters and digits."
    return None


async def _refuse(send: Send, status: int, text: str) -> None:
    body = json.dumps({"detail": text}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
