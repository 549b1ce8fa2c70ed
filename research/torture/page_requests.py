"""Hostile requests to the web page: forbidden addresses, tricks with headers, broken HTTP; each with what is wrong."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from research.torture import page_bodies
from research.torture.page_bodies import VALUES
from research.torture.page_client import ANSWER, JOIN, Reply, request

ROOT = Path(__file__).parents[2]
EVIL = "evil.example"
SHOWN = 300  # characters of the name of a request


@dataclass(frozen=True)
class Hostile:
    """What is sent, what it is, and what is wrong with an answer to it (None: nothing)."""

    kind: str
    name: str
    sent: bytes
    wrong: Callable[[Reply], str | None]


def hostile_requests(seed: int) -> list[Hostile]:
    """Every sort of hostile request; the random ones are seeded."""
    generator = random.Random(seed)
    sorts: dict[str, tuple[Iterator[tuple[str, bytes]], Callable[[Reply], str | None]]] = {
        "addresses": (_addresses(), partial(_refused, 400, 403, 404)),
        "methods": (_methods(), partial(_refused, 400, 404, 405)),
        "hosts": (_hosts(), _own_address),
        "origins": (_origins(), _same_origin),
        "headers": (_headers(), _no_fault),
        "protocols": (_protocols(), _no_fault),
        "noise": (page_bodies.noise(generator), _no_fault),
        "bodies": (page_bodies.bodies(generator), partial(_refused, 400, 413, 422)),
        "functions": (page_bodies.functions(generator), partial(_refused, 400)),
        "sessions": (page_bodies.sessions(generator), partial(_refused, 400, 404)),
    }
    return [
        Hostile(kind, name[:SHOWN], sent, wrong) for kind, (requests, wrong) in sorts.items() for name, sent in requests
    ]


def _no_fault(reply: Reply) -> str | None:
    """No status from 500 on, no secret, and an end."""
    if reply.status >= 500:
        return "a fault of the server"
    if not reply.ended:
        return "an unfinished answer"
    secrets = ("root:x:", "root:*:", "[build-system]", "Traceback", "site-packages", str(ROOT))
    return next((f"an answer with {secret!r}" for secret in secrets if secret in reply.text), None)


def _refused(*args: int | Reply) -> str | None:
    """One of these statuses (or no answer at all, for what is not HTTP)."""
    *allowed, reply = args
    assert isinstance(reply, Reply)
    if reply.status and reply.status not in allowed:
        return f"not one of {allowed}"
    return _no_fault(reply)


def _own_address(reply: Reply) -> str | None:
    """No address of somebody else, unless no cache may keep the answer."""
    if EVIL in reply.head or (EVIL in reply.text and "cache-control: no-store" not in reply.head.lower()):
        return "an answer with an address of somebody else, which a cache may keep"
    return _no_fault(reply)


def _same_origin(reply: Reply) -> str | None:
    """No permission for another site to read the answer."""
    if "access-control-allow-origin" in reply.head.lower():
        return "an answer that other sites may read"
    return _no_fault(reply)


def _addresses() -> Iterator[tuple[str, bytes]]:
    files = ["/etc/passwd", "/proc/self/environ", str(ROOT / "pyproject.toml"), "C:\\Windows\\win.ini"]
    ways = ("/gradio_api/file=", "/file=", "/gradio_api/file/", "/gradio_api/proxy=", "/gradio_api/stream/", "/")
    paths = [way + file for way in ways for file in files]
    up = ("../", "..%2f", "%2e%2e/", "..%5c", "..\\", "%252e%252e%252f", "..%c0%af", "....//", "%00../")
    folders = ("/assets/", "/static/", "/static/img/", "/gradio_api/custom_component/")
    paths += [f"{folder}{step * 12}etc/passwd" for folder in folders for step in up]
    targets = ("http://127.0.0.1:1/", "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", f"//{EVIL}/")
    fetching = ("/gradio_api/proxy=", "/gradio_api/file=", "/proxy=", "/svelte/")
    paths += [way + quote(target, safe="") for way in fetching for target in targets]
    paths += [f"/gradio_api/{name}" for name in ("info", "app_id", "token", "runs", "dev/reload", "upload_progress")]
    paths += ["/gradio_api/heartbeat/torture", "/gradio_api/call/explain", "/monitoring", "/docs", "/openapi.json"]
    paths += ["/login", "/logout", "/manifest.json", "/pwa_icon", "/.git/config", "/.env", "//", "/config/", "/assets"]
    paths += ["/assets/" + "a" * 5000, "/assets" + "/a" * 5000, "/static/img", "/assets/%00", "/assets/%ff%fe"]
    paths += ["/%1b[31m%1b]0;owned%07", "/\u00e9".encode().decode("latin-1"), "*", EVIL]
    paths += [f"http://{EVIL}/gradio_api/file=/etc/passwd", "/gradio_api/deep_link?session_hash=x"]
    yield from ((path, request(path)) for path in paths)


def _methods() -> Iterator[tuple[str, bytes]]:
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "OPTIONS", "PROPFIND", "get", "X" * 3000):
        yield f"{method[:20]} /", request("/", method)
    routes = ("upload", "run/explain", "api/explain", "call/explain", "call/v2/explain", "component_server", "cancel")
    for route in (*routes, "reset", "vibe-edit", "process_recording", "stream/x", "run-history/connect"):
        yield f"POST {route}", request(f"/gradio_api/{route}", "POST", b'{"session_hash": NaN, "data": ["\\ud800"]}')
    form = b'--b\r\nContent-Disposition: form-data; name="files"; filename="../../x.py"\r\n\r\nx\r\n--b--\r\n'
    kind = [("Content-Type", "multipart/form-data; boundary=b")]
    yield "an upload", request("/gradio_api/upload", "POST", form, kind)
    yield "an upload to the queue", request(JOIN, "POST", form, kind)
    yield "POST /", request("/", "POST", b"{}")
    yield "HEAD of the answers", request(f"{ANSWER}?session_hash=x", "HEAD")


def _hosts() -> Iterator[tuple[str, bytes]]:
    hosts = [EVIL, f"localhost.{EVIL}", f"localhost:80@{EVIL}", f"{EVIL}:80", "localhost:99999999", "localhost:x", ""]
    hosts += [
        "[::1",
        f"[::1]{EVIL}",
        "x" * 5000,
        f"localhost, {EVIL}",
        f"localhost\t{EVIL}",
        "\x80\xff",
        "0x7f.1",
        "..",
    ]
    for host in hosts:
        yield f"Host: {host[:40]!r}", request("/config", headers=[("Host", host)])
        for name in ("X-Forwarded-Host", "X-Gradio-Server"):
            yield f"{name}: {host[:40]!r}", request("/config", headers=[(name, host)])
    markup = f'{EVIL}"></script><script>alert(1)</script>'
    for name in ("X-Forwarded-Host", "X-Gradio-Server", "X-Forwarded-Proto", "X-Forwarded-Prefix", "X-Original-URL"):
        yield f"{name} with markup", request("/", headers=[(name, markup)])
    yield "two hosts", request("/config", headers=[("Host", "localhost"), ("Host", EVIL)])
    yield "an address that names a host", request(f"http://{EVIL}/config")
    yield "no host", b"GET /config HTTP/1.1\r\nConnection: close\r\n\r\n"
    yield "no host, but an origin", f"GET /config HTTP/1.0\r\nOrigin: http://{EVIL}\r\n\r\n".encode()


def _origins() -> Iterator[tuple[str, bytes]]:
    for origin in (f"http://{EVIL}", "null", f"http://localhost.{EVIL}", "file://", "http://[", "\x80"):
        yield f"Origin: {origin!r}", request("/config", headers=[("Origin", origin)])
        body = json.dumps({"data": VALUES, "fn_index": 0, "session_hash": "torture"}).encode()
        plain = [("Origin", origin), ("Content-Type", "text/plain")]
        yield f"a form of {origin!r}", request(JOIN, "POST", body, plain)
        asked = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
        yield f"a question of {origin!r}", request(JOIN, "OPTIONS", headers=asked)


def _headers() -> Iterator[tuple[str, bytes]]:
    yield "a query of 60 KB", request("/?" + "a" * 60_000 + "%")
    yield "a header of 60 KB", request(headers=[("X-Long", "a" * 60_000)])
    yield "a header of 1 MB", request(headers=[("X-Long", "a" * 1_000_000)])
    yield "5,000 headers", request(headers=[(f"X-{k}", "a") for k in range(5000)])
    yield "escape codes", request(headers=[("User-Agent", "\x1b[2J\x1b]0;owned\x07"), ("Referer", "\x9b31m")])
    yield "a folded header", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\nConnection: close\r\n\r\n"
    yield "a space before the colon", request(headers=[("X-A ", "b")])
    yield "a NUL", request(headers=[("X-A", "a\x00b")])
    yield "line feeds alone", b"GET / HTTP/1.1\nHost: localhost\nConnection: close\n\n"
    yield "cookies", request(headers=[("Cookie", "access-token=x; " * 500)])
    yield "a bad Accept-Encoding", request("/config", headers=[("Accept-Encoding", "br;q=\x80, gzip;q=abc, *;q=-1")])
    for span in ("bytes=-1", "bytes=9-1", "bytes=0-0,1-1," + "0-," * 500, "bytes=" + "9" * 400 + "-", "lines=1-2"):
        yield f"Range: {span[:30]}", request("/static/img/logo.svg", headers=[("Range", span), ("If-Range", "\x80")])
    yield "Expect: 100-continue", request(JOIN, "POST", b"{}", [("Expect", "100-continue")])
    yield "Expect: the unexpected", request(JOIN, "POST", b"{}", [("Expect", "x" * 200)])


def _protocols() -> Iterator[tuple[str, bytes]]:
    yield "HTTP/0.9", b"GET /\r\n"
    yield "HTTP/1.0", b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"
    yield "HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)
    yield "HTTP/9.9", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n"
    yield "TLS", bytes.fromhex("16030100f5010000f10303") + bytes(234)
    yield "SSH", b"SSH-2.0-OpenSSH_9.6\r\n"
    yield "empty lines", b"\r\n" * 5000
    yield "pipelined requests", request(headers=[("Connection", "keep-alive")]) * 30 + request()
    yield "pipelined after a mistake", request("/x", headers=[("Connection", "keep-alive")]) + b"\x00\x01" + request()
    ask = [("Connection", "Upgrade, close"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")]
    for path in ("/", "/gradio_api/queue/join", "/gradio_api/stream/x"):
        for key in ("dGhlIHNhbXBsZSBub25jZQ==", "x", ""):
            sent = request(path, headers=[*ask, ("Sec-WebSocket-Key", key)])
            yield f"a websocket at {path} with key {key!r}", sent + b"\x81\xfe\xff\xff" + bytes(70)
    yield "an upgrade to h2c", request(headers=[("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c")])
    both = b"POST " + JOIN.encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    inner = f"GET /gradio_api/file=/etc/passwd HTTP/1.1\r\nHost: {EVIL}\r\n\r\n".encode()
    yield "a length and chunks", both + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner
    yield "two lengths", both + b"Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}" + inner
    yield "chunks by another name", both + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + inner
    for length in ("-1", "1e3", "0x10", "9" * 30, "", "2, 2", "+2"):
        yield f"Content-Length: {length!r}", both + f"Content-Length: {length}\r\n\r\n{{}}".encode()
    for size in (b"zz", b"-1", b"f" * 20, b"2;" + b"a" * 70_000, b"2\r\n{}\r\n0\r\nX: " + b"a" * 70_000):
        yield f"a chunk of {size[:20]!r}", both + b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\n{}\r\n0\r\n\r\n"
