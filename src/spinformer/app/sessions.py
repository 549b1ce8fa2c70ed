"""What Gradio's queue keeps of each visitor, bounded: answers that nobody reads, and requests that are over."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spinformer.app import limits
from spinformer.app.controls import LONG


class Sessions:
    """The visitors of a page who wait for an answer, or whose answer waits for them.

    Gradio keeps the answers of the last 2,000 visitors until they are read, and a record of every visitor for ever.
    From here on it keeps those of the last `limits.SESSIONS`, and of all who still wait.
    """

    def __init__(self, queue: Any) -> None:
        self.queue = queue
        self.reading: set[str] = set()  # sessions whose answers are being sent
        self.messages = _Kept(self, asyncio.Queue)
        self.requests = _Kept(self, set)
        queue.pending_messages_per_session, queue.pending_event_ids_session = self.messages, self.requests
        # It would sum up the last 10,000 requests after each one, for a page that shows nobody the sums.
        queue.ANALYTICS_MAX_EVENTS, queue.ANAYLTICS_CACHE_FREQUENCY = limits.SESSIONS, 10**12

    def waiting_for_long(self) -> int:
        """How many refinements and files wait for their turn."""
        waiting = self.queue.event_queue_per_concurrency_id.get(LONG)
        return 0 if waiting is None else len(waiting.queue)

    def working(self, session: str) -> bool:
        """Whether a request of the session waits in the queue or is worked on, for somebody who is still there."""
        events = (self.queue.event_ids_to_events.get(request) for request in self.requests.get(session, ()))
        return any(event is not None and event.alive for event in events)

    def waiting(self, session: str) -> bool:
        """Whether an answer is being made for the session, or is there and was not read."""
        messages = self.messages.get(session)
        return messages is not None and (not messages.empty() or self.working(session))

    @contextmanager
    def read(self, session: str) -> Iterator[None]:
        """While the session's answers are being sent; after that it is forgotten, unless it is worked on."""
        self.reading.add(session)
        try:
            yield
        finally:
            self.reading.discard(session)
            if not self.working(session):
                self.messages.pop(session, None)
                self.requests.pop(session, None)


class _Kept(OrderedDict[str, Any]):
    """By session: the last `limits.SESSIONS`, and all that are worked on or read.

    Gradio looks up and deletes what another of its tasks may have deleted; neither is an error here.
    """

    def __init__(self, sessions: Sessions, empty: Callable[[], Any]) -> None:
        super().__init__()
        self._sessions, self._empty = sessions, empty

    def __missing__(self, session: str) -> Any:
        return self._empty()

    def __delitem__(self, session: str) -> None:
        self.pop(session, None)

    def __setitem__(self, session: str, value: Any) -> None:
        super().__setitem__(session, value)
        over = len(self) - limits.SESSIONS
        if over > 0:
            busy = self._sessions
            done = [old for old in self if old != session and old not in busy.reading and not busy.working(old)]
            for old in done[:over]:
                self.pop(old, None)
