"""Changes of state that threads share: made by the first that needs one, undone when the last is done."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn

_LOCK = threading.Lock()


class SharedChange:
    """A context manager for many threads at once, and within itself. change: makes the change, and returns its undoing.

    Where each thread changed and restored on its own, one would restore what another had changed.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self.change, self.inside, self.lock = change, 0, threading.Lock()
        self.undo: Callable[[], None] | None = None

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.undo = self.change()
            self.inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and self.undo is not None:
                undo, self.undo = self.undo, None
                undo()


_EVALUATED: WeakKeyDictionary[nn.Module, SharedChange] = WeakKeyDictionary()


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode; after the last thread's block every part of it is back in its former mode."""
    with _LOCK:
        shared = _EVALUATED.get(model)
        if shared is None:
            shared = _EVALUATED[model] = SharedChange(_Evaluation(model))
    with shared:
        yield


class _Evaluation:
    """Switch a model, of which it holds no reference of its own while nothing is switched."""

    def __init__(self, model: nn.Module) -> None:
        self.model = ref(model)

    def __call__(self) -> Callable[[], None]:
        model = self.model()
        if model is None or not model.training:
            return lambda: None
        modes = [(module, module.training) for module in model.modules()]
        model.eval()

        def undo() -> None:
            for module, training in modes:
                module.training = training

        return undo


def _switch_off_plans() -> Callable[[], None]:
    if not torch.backends.cuda.cudnn_sdp_enabled():
        return lambda: None
    torch.backends.cuda.enable_cudnn_sdp(False)
    return lambda: torch.backends.cuda.enable_cudnn_sdp(True)


# Softmax attention on a GPU by kernels that take any shape. cuDNN plans its own anew for every shape, which takes
# longer than a pass, and texts and coalitions come in ever new shapes.
attention_of_any_shape = SharedChange(_switch_off_plans)
