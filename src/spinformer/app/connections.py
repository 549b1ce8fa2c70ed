"""Connections that cannot shut others out: a request must arrive in time, and few may be unfinished at once."""

import asyncio
from typing import Any

from spinformer._base.extras import require
from spinformer.app import limits


def timed_protocol() -> type[asyncio.Protocol]:
    """The HTTP protocol of uvicorn, for one server, with these limits:

    a request, its headers and its body, must arrive within `limits.ARRIVAL` seconds of the connection's start, or of
    the request's first byte where others came before it; of the connections that wait for a request, the oldest is
    closed where there are more than `limits.UNFINISHED`.
    """
    h11 = require("h11", extra="app")
    base: Any = require("uvicorn.protocols.http.h11_impl", extra="app").H11Protocol
    waiting: dict[Any, asyncio.TimerHandle] = {}  # in the order of their coming

    class TimedProtocol(base):  # type: ignore[misc]
        """See `timed_protocol`."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
                self._wait()
            else:
                self._stop_waiting()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _wait(self) -> None:
            """Begin to wait for the rest of a request, unless that has begun."""
            if self in waiting:
                return
            waiting[self] = self.loop.call_later(limits.ARRIVAL, self._close)
            if len(waiting) > limits.UNFINISHED:
                next(iter(waiting))._close()

        def _stop_waiting(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

        def _close(self) -> None:
            self._stop_waiting()
            self.connections.discard(self)
            self.transport.abort()

    protocol: type[asyncio.Protocol] = TimedProtocol
    return protocol
