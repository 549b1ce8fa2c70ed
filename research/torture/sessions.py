"""Thousands of new sessions of the web page: what the server keeps of them must not add up.

Most ask once and read the answer. Others leave before it, never fetch it, or only open the page.
"""

import random
import threading
from contextlib import closing

from research.benchmarks.app import Served, fetch, functions, join_queue, read_answer, server
from research.torture.findings import Findings, Plan
from research.torture.page_client import ANSWER, Exchange, defects, ordinary_visitor, request, resident
from spinformer.app import limits

SESSIONS, WARM = 5_000, 1_000  # in all, and those of them before memory is watched
AT_ONCE = 3  # sessions
VALUES = ["A dog.", "A cat.", 0.25, limits.SAMPLES[0], -1, -1]
# How a session goes on, of twenty: most ask and read.
WAYS = (*["ask"] * 14, *["leave"] * 2, *["forget"] * 2, *["open"] * 2)
# By a line that is fitted to it, memory may grow by noise, in MB, and by this for each session, in KB: 20 MB for 4,000.
NOISE, GROWTH = 8.0, 3.0
LOOKS = 40  # measurements of memory after the warm-up


def run(plan: Plan) -> Findings:
    """5,000 sessions of the page that `spinformer app` serves."""
    with server() as page:
        return visit(page, plan)


def visit(page: Served, plan: Plan) -> Findings:
    """The same of a page that is served already. However few sessions there are, the page forgets some of them."""
    found, generator = Findings(), random.Random(plan.seed)
    warm = max(plan.count(WARM), limits.SESSIONS + 20)
    watched = plan.count(SESSIONS - WARM)
    _visits(page.url, warm, generator, found)
    step = max(watched // LOOKS, 1)
    memory = [(0, resident(page.pid))]
    while memory[-1][0] < watched:
        count = min(step, watched - memory[-1][0])
        _visits(page.url, count, generator, found)
        memory.append((memory[-1][0] + count, resident(page.pid)))
    slope = _slope(memory)
    growth, bound = slope * watched, NOISE + GROWTH * watched / 1024
    text = f"{watched} sessions after {warm} others took {growth:.1f} MB by a fitted line; they may take {bound:.1f} MB"
    found.expect(growth <= bound, text)
    printed, _ = defects(page, 0)
    found.expect(printed is None, f"with {warm + watched} sessions {printed}")
    unserved = ordinary_visitor(page.url)
    found.expect(unserved is None, f"after {warm + watched} sessions a visitor was not served: {unserved}")
    found.figures = {"first_mb": memory[0][1], "last_mb": memory[-1][1], "growth_mb": growth, "bound_mb": bound}
    found.figures |= {"kb_per_session": 1024 * slope, "peak_mb": resident(page.pid, peak=True)}
    return found


def _visits(url: str, count: int, generator: random.Random, found: Findings) -> None:
    """So many sessions, a few at once."""
    ways = [generator.choice(WAYS) for _ in range(count)]
    waiting, errors = iter(ways), list[str]()

    def work() -> None:
        for way in waiting:
            try:
                _session(url, way)
            except (OSError, ValueError, KeyError) as error:
                errors.append(f"a session that would {way} got {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for way in ways:
        found.count(way)
    found.failures += errors


def _session(url: str, way: str) -> None:
    if way == "open":
        fetch(url, "GET", "/")
        return
    session = join_queue(url, functions(url)["explain"], VALUES)
    if way == "leave":
        with closing(Exchange(url, request(f"{ANSWER}?session_hash={session}"))) as leaving:
            leaving.connection.recv(1)
    elif way == "ask" and 'class="result"' not in (answer := read_answer(url, session)):
        raise ValueError(answer[:200])


def _slope(points: list[tuple[int, float]]) -> float:
    """Of the straight line that fits best."""
    across, up = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((x - across) ** 2 for x, _ in points)
    return sum((x - across) * (y - up) for x, y in points) / spread if spread else 0.0
