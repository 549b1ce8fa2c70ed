"""Serve the page: to this machine alone unless another host is named, and nothing but the page."""

import socket
from typing import Any

from spinformer._base.extras import require
from spinformer.app import limits
from spinformer.app.connections import timed_protocol
from spinformer.app.controls import LONG
from spinformer.app.guard import Accepts, Guard
from spinformer.app.sessions import Sessions
from spinformer.app.style import css, theme

LOCAL = ("127.0.0.1", "localhost", "::1")
# Connections that wait to be accepted, and connections at once; a visitor holds two or three. Work of connections that
# were just closed counts too for a moment: at most those that may wait (`limits`) and all that were accepted at once.
BACKLOG, CONNECTIONS = 400, 800


def application(blocks: Any, *, framed_by: str = "'self'", hosts: tuple[str, ...] | None = None) -> Any:
    """The ASGI application of a page. hosts: the host names that requests may use; None for any."""
    gradio = require("gradio", extra="app")
    fastapi = require("fastapi", extra="app")
    trusted = require("starlette.middleware.trustedhost", extra="app").TrustedHostMiddleware
    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    functions = {number: _accepts(function) for number, function in blocks.fns.items() if function.fn is not None}
    app.add_middleware(Guard, functions=functions, sessions=Sessions(blocks._queue), framed_by=framed_by)
    if hosts is not None:
        app.add_middleware(trusted, allowed_hosts=list(hosts))
    return gradio.mount_gradio_app(
        app,
        blocks,
        path="/",
        footer_links=[],
        run_history=False,
        show_error=False,
        max_file_size=limits.BYTES,
        ssr_mode=False,
        enable_monitoring=False,
        pwa=False,
        mcp_server=False,
        theme=theme(),
        css=css(),
        app_kwargs={"docs_url": None, "redoc_url": None, "openapi_url": None},
    )


def _accepts(function: Any) -> Accepts:
    """What a function of the page takes; one of them takes a file."""
    file = function.api_name.partition("_")[0] == "file"
    size = limits.FILE_REQUEST if file else limits.BYTES
    return Accepts(len(function.inputs), size, function.concurrency_id == LONG)


def serve(blocks: Any, *, host: str = "127.0.0.1", port: int = 0, framed_by: str = "'self'") -> None:
    """Serve until interrupted; port 0: a free one, which is printed."""
    bound = bind(host, port)
    hosts = ("127.0.0.1", "localhost", "[::1]") if host in LOCAL else None
    server = web_server(application(blocks, framed_by=framed_by, hosts=hosts))
    name = f"[{host}]" if ":" in host else host
    print(f"spinformer app: http://{name}:{bound.getsockname()[1]} (Ctrl-C stops it)", flush=True)
    try:
        server.run(sockets=[bound])
    finally:
        bound.close()


def web_server(app: Any) -> Any:
    """The uvicorn server of an ASGI application, within the limits of connections; its method `run` takes sockets."""
    uvicorn = require("uvicorn", extra="app")
    config = uvicorn.Config(
        app,
        log_level="warning",
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=2,
        server_header=False,
        ws="none",
        http=timed_protocol(),
    )
    return uvicorn.Server(config)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; port 0: a free one."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port must be from 0 to 65535; got {port}")
    try:
        kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(kind, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)  # visitors who come before the server is up wait
    except OSError as error:
        raise OSError(f"cannot listen on {host}, port {port}: {error}") from None
    return bound
