"""Connections that cannot shut others out: requests must arrive and answers be taken in time, and few may be late."""

import asyncio
from typing import Any

from spinformer._base.extras import require
from spinformer.app import limits


class Late:
    """Connections that wait for their client: each for at most `seconds`.

    Where there are more than `most`, the oldest are closed once they have waited for `limits.GRACE` seconds; where
    there are more than `limits.BURST` beyond that, at once.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self.seconds, self.most = seconds, most
        self._timers: dict[Any, asyncio.TimerHandle] = {}  # in the order of their coming
        self._later: asyncio.TimerHandle | None = None

    def add(self, connection: Any) -> None:
        """Begin to wait, unless that has begun."""
        if connection in self._timers:
            return
        loop = connection.loop
        self._timers[connection] = loop.call_later(self.seconds, self._close, connection)
        self._thin(loop)

    def discard(self, connection: Any) -> None:
        """Stop waiting."""
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _thin(self, loop: asyncio.AbstractEventLoop) -> None:
        while len(self._timers) > self.most:
            oldest, timer = next(iter(self._timers.items()))
            left = timer.when() - self.seconds + limits.GRACE - loop.time()
            if left > 0 and len(self._timers) <= self.most + limits.BURST:
                if self._later is None:
                    self._later = loop.call_later(left, self._thin_later, loop)
                return
            self._close(oldest)

    def _thin_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._later = None
        self._thin(loop)

    def _close(self, connection: Any) -> None:
        self.discard(connection)
        connection.connections.discard(connection)
        connection.transport.abort()


def timed_protocol() -> type[asyncio.Protocol]:
    """The HTTP protocol of uvicorn, for one server, with these limits:

    a request, its headers and its body, must arrive within `limits.ARRIVAL` seconds of the connection's start, or of
    the answer before it; what was sent must be taken within `limits.TAKING` seconds. At most `limits.UNFINISHED`
    connections may wait for a request, and `limits.UNTAKEN` for their client to take an answer.
    """
    h11 = require("h11", extra="app")
    base: Any = require("uvicorn.protocols.http.h11_impl", extra="app").H11Protocol
    arriving, taking = Late(limits.ARRIVAL, limits.UNFINISHED), Late(limits.TAKING, limits.UNTAKEN)

    class TimedProtocol(base):  # type: ignore[misc]
        """See `timed_protocol`."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            arriving.add(self)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._look()

        def pause_writing(self) -> None:
            super().pause_writing()
            taking.add(self)

        def resume_writing(self) -> None:
            super().resume_writing()
            if not self.transport.is_closing():
                taking.discard(self)

        def connection_lost(self, exc: Exception | None) -> None:
            arriving.discard(self)
            taking.discard(self)
            super().connection_lost(exc)

        def _look(self) -> None:
            """Wait for the next request or for its rest; where none can come, for the last bytes to be taken."""
            if self.transport.is_closing():
                arriving.discard(self)
                taking.add(self)
            elif self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
                arriving.add(self)
            else:
                arriving.discard(self)

    protocol: type[asyncio.Protocol] = TimedProtocol
    return protocol
