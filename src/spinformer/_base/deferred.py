"""Work that a package does for its users when it is imported, and that a command of ours leaves until it is needed."""

from collections.abc import Callable

_waiting: list[Callable[[], None]] | None = None  # None: nothing has to wait


def at_import(work: Callable[[], None]) -> None:
    """Do `work` now, or after `defer` in `catch_up`."""
    if _waiting is None:
        work()
    else:
        _waiting.append(work)


def defer() -> None:
    """From here on, `at_import` waits. For a process that runs one command and no code of its user's."""
    global _waiting
    _waiting = []


def catch_up() -> None:
    """Do what has waited; from here on nothing does."""
    global _waiting
    waiting, _waiting = _waiting or [], None
    for work in waiting:
        work()
