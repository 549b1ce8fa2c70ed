"""When Python looks for garbage: seldom while modules are imported, for they make many objects that stay."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

_own = False


def own_process() -> None:
    """Say that this process runs one command and then ends, so that what it imports is never garbage.

    At its end nothing is gained by a last search, a second long.
    """
    global _own
    _own = True
    atexit.register(gc.freeze)


def is_own_process() -> bool:
    """Whether `own_process` was called: no code of a user runs here, but for extensions."""
    return _own


@contextmanager
def no_collection() -> Iterator[None]:
    """Look for no garbage inside the block, which imports modules or loads a model: a tenth of its time goes there.

    In a process of our own, what the block made is not searched later either.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _own:
            gc.freeze()
        if enabled:
            gc.enable()
