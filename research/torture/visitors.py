"""Many visitors of the web page at once, each of whom asks again as soon as an answer comes."""

import random
import threading

from research.benchmarks.app import Served, fetch, load_test, picture, send_request, server
from research.torture.findings import Findings, Plan
from research.torture.page_client import defects, ordinary_visitor, resident
from spinformer.app.page import TITLE

USERS, SECONDS = 200, 60
FIGURES = ("requests", "refused", "errors", "per_second", "p50", "p95")


def run(plan: Plan) -> Findings:
    """200 visitors of the page that `spinformer app` serves, for a minute; the page may refuse those for whom its queue
    has no room, and nothing else may go wrong."""
    with server() as page:
        send_request(page.url, "watch", picture(random.Random(plan.seed)))  # trains the attractor
        return crowd(page, plan)


def crowd(page: Served, plan: Plan) -> Findings:
    """The same to a page that is served already."""
    found, users, seconds = Findings(), plan.count(USERS), max(SECONDS * plan.scale, 1.0)
    wrong = open_at_once(page.url, users)
    found.expect(not wrong, f"{len(wrong)} of {users} who opened the page at once got errors, as {wrong[:1]}")
    outcome = load_test(page.url, users, seconds, plan.seed)
    found.count("visitors", users)
    found.count("requests", outcome["requests"])
    found.expect(outcome["errors"] == 0, f"{outcome['errors']} errors, as {outcome['first_errors']}")
    found.expect(outcome["requests"] > outcome["refused"], f"nobody was answered: {outcome}")
    printed, _ = defects(page, 0)
    found.expect(printed is None, f"with {users} visitors {printed}")
    unserved = ordinary_visitor(page.url)
    found.expect(unserved is None, f"after {users} visitors another was not served: {unserved}")
    found.figures = {name: outcome[name] for name in FIGURES if name in outcome}
    found.figures |= {"users": users, "seconds": seconds, "peak_mb": resident(page.pid, peak=True)}
    return found


def open_at_once(url: str, users: int) -> list[str]:
    """Let this many visitors open the page at the same moment; returns what went wrong."""
    wrong, ready = list[str](), threading.Barrier(users)

    def visit() -> None:
        ready.wait()
        try:
            if TITLE not in fetch(url, "GET", "/"):
                wrong.append("the page has no title")
        except OSError as error:
            wrong.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=visit) for _ in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong
