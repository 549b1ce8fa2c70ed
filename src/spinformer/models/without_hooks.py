"""Copies without the hooks that reading hidden states leaves in a model: local functions, which no pickle holds.

transformers puts such hooks into a model when its hidden states are asked for, and never takes them out. We put in one
of our own for the time of a pass, which may be that of another thread.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, Self

from torch import nn

HOOKS = "_forward_hooks"
INSTALLED = "_output_capturing_hooks_installed"  # with this transformers puts in no more
MAKERS = ("transformers.utils.output_capturing", "spinformer.models.hidden_states")


class Portable:
    """What has a `model` and can be pickled, also while other threads use the model."""

    model: Any

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and deep copies."""
        return without_hooks(vars(self), self.model)

    def __copy__(self) -> Self:
        """Another one with the same model."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other


def without_hooks(held: Mapping[str, Any], model: nn.Module) -> dict[str, Any]:
    """What an object holds, by name, as copies, with the same weights and without such hooks in `model`.

    The model itself stays as it is, and threads may go on using it. Where it has no such hooks nothing is copied.
    """
    modules = list(model.modules())
    if not any(_left(hook) for module in modules for hook in list(module._forward_hooks.values())):
        return dict(held)
    # Weights are their own copies, and every module has its copy before what it holds is copied.
    memo: dict[int, Any] = {id(tensor): tensor for tensor in chain(model.parameters(), model.buffers())}
    memo |= {id(module): object.__new__(type(module)) for module in modules}
    for module in modules:
        state = dict(vars(module))  # at one moment
        state.pop(INSTALLED, None)
        state[HOOKS] = OrderedDict((key, hook) for key, hook in list(state[HOOKS].items()) if not _left(hook))
        vars(memo[id(module)]).update(copy.deepcopy(state, memo))
    return copy.deepcopy(dict(held), memo)


def _left(hook: Callable[..., Any]) -> bool:
    """Whether a hook is one of those."""
    return getattr(hook, "__module__", None) in MAKERS
