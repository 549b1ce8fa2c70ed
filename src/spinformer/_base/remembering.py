"""Results of a function that are kept as long as they fit into memory."""

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Remembering(Generic[P, R]):
    """A function of hashable arguments that keeps what it returned last, `most` bytes of it at most

    bytes_of: how much a result takes, from the same arguments. One result is kept however large it is. For several
    threads: a result may be computed twice, but what is returned is whole.
    """

    def __init__(self, function: Callable[P, R], bytes_of: Callable[P, int], most: int) -> None:
        self.function, self.bytes_of, self.most = function, bytes_of, most
        self.kept: OrderedDict[Hashable, tuple[R, int]] = OrderedDict()
        self.bytes = 0
        self.lock = threading.Lock()
        functools.update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """As of the function."""
        key = (args, *sorted(kwargs.items()))
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key][0]
        result, size = self.function(*args, **kwargs), self.bytes_of(*args, **kwargs)
        with self.lock:
            if key not in self.kept:
                self.kept[key] = (result, size)
                self.bytes += size
            while self.bytes > self.most and len(self.kept) > 1:
                self.bytes -= self.kept.popitem(last=False)[1][1]
        return result
