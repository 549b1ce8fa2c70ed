"""Hostile clients of the web page: after each request the server must be whole, and the next visitor be served."""

import random
from collections.abc import Callable

from research.benchmarks.app import Served, functions, server
from research.torture import page_connections
from research.torture.findings import Findings, Plan
from research.torture.page_client import Exchange, Reply, defects, ordinary_visitor
from research.torture.page_connections import Held
from research.torture.page_requests import Hostile, hostile_requests
from research.torture.page_values import Question, ask, hostile_questions
from spinformer.app import limits

AT_LEAST = 100  # hostile requests of the full torture
SHORT = 1.0  # seconds to wait for an answer before the next request; what has none by then is looked at in the end
SLOW = limits.UNTAKEN + 10  # connections that take nothing


def run(plan: Plan) -> Findings:
    """All hostile requests, or a seeded share of each sort, to the page that `spinformer app` serves."""
    with server() as page:
        return attack(page, plan)


def attack(page: Served, plan: Plan) -> Findings:
    """The same to a page that is served already."""
    found, seen = Findings(), 0
    held = page_connections.hold(page.url, max(plan.count(page_connections.HELD), limits.UNFINISHED + 20), found)
    if plan.scale == 1:
        held += page_connections.hold_answers(page.url, SLOW, found)
        page_connections.drip(page.url, found)
    page_connections.streams(page.url, found)
    chosen = _choose(plan, page)
    assert plan.scale < 1 or len(chosen) >= AT_LEAST
    for hostile in chosen:
        wrong = _send(page.url, hostile, held) if isinstance(hostile, Hostile) else ask(page.url, hostile)
        found.count(hostile.kind)
        found.expect(wrong is None, f"{hostile.kind}: {hostile.name} was answered by {wrong}")
        printed, seen = defects(page, seen)
        found.expect(printed is None, f"{hostile.kind}: after {hostile.name} {printed}")
        unserved = ordinary_visitor(page.url)
        found.expect(unserved is None, f"{hostile.kind}: after {hostile.name} a visitor was not served: {unserved}")
    page_connections.end(held, found)
    printed, seen = defects(page, seen)
    found.expect(printed is None, f"connections: after the last ended {printed}")
    return found


def _choose(plan: Plan, page: Served) -> list[Hostile | Question]:
    """Every hostile request, or a share of each kind, in a random order."""
    everything: list[Hostile | Question] = [*hostile_requests(plan.seed)]
    everything += hostile_questions(plan.seed, sorted(functions(page.url)))
    kinds: dict[str, list[Hostile | Question]] = {}
    for hostile in everything:
        kinds.setdefault(hostile.kind, []).append(hostile)
    generator = random.Random(plan.seed)
    chosen = [one for those in kinds.values() for one in generator.sample(those, plan.count(len(those)))]
    generator.shuffle(chosen)
    return chosen


def _send(url: str, hostile: Hostile, held: list[Held]) -> str | None:
    """Send a hostile request; what the server leaves unanswered for the moment joins the connections that are held."""
    sending = Exchange(url, hostile.sent)
    reply = sending.read(SHORT)
    if reply.ended or reply.status:
        reply = sending.read()
    else:
        held.append(Held(f"{hostile.kind}: {hostile.name}", sending, limits.ARRIVAL + 5))
        return None
    sending.close()
    return _described(hostile.wrong, reply)


def _described(wrong: Callable[[Reply], str | None], reply: Reply) -> str | None:
    """What is wrong with an answer, and the answer."""
    found = wrong(reply)
    return None if found is None else f"{found}: {reply}"
