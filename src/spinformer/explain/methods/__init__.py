"""Explanation methods by name. A new one is an object of class `Method`: `METHODS.register(MyMethod())`."""

from spinformer._base import checks
from spinformer.explain.context import Context
from spinformer.explain.methods.additive import AdditiveMethod
from spinformer.explain.methods.base import METHODS, Method, ScorerMethod
from spinformer.explain.methods.chance import RANDOM
from spinformer.explain.methods.game import GAME_METHODS, index_method
from spinformer.explain.methods.gradients import GRADIENT_TIMES_INPUT, INTEGRATED_GRADIENTS
from spinformer.explain.methods.layer import LAYER_METHODS
from spinformer.explain.methods.occlusion import LEAVE_ONE_OUT
from spinformer.explain.methods.sampling import KernelShapMethod, ShapleySamplingMethod
from spinformer.games.indices import INDICES

__all__ = ["METHODS", "Context", "Method", "ScorerMethod", "all_methods", "available_methods", "get_method"]

for _method in (
    *GAME_METHODS,
    KernelShapMethod(),
    ShapleySamplingMethod(),
    LEAVE_ONE_OUT,
    INTEGRATED_GRADIENTS,
    GRADIENT_TIMES_INPUT,
    AdditiveMethod(),
    *LAYER_METHODS,
    RANDOM,
):
    METHODS.register(_method)


def all_methods() -> dict[str, Method]:
    """Every method by name: those registered, and one for each index of players that names a method."""
    indices = (index for index in INDICES.values() if index.order == 1 and index.method is not None)
    methods = dict(METHODS.items())
    for method in map(index_method, indices):
        known = methods.setdefault(method.name, method)
        if getattr(known, "index", None) != method.index:
            raise ValueError(f"index {method.index!r} names method {method.name!r}, which is another method already")
    return methods


def get_method(name: str) -> Method:
    """The method of this name; an unknown name is a ValueError that lists the known ones."""
    methods = all_methods()
    checks.choice("method", name, tuple(methods))
    return methods[name]


def available_methods(context: Context) -> list[str]:
    """The names of the methods that this classifier can be explained by: those that lack nothing."""
    return [name for name, method in all_methods().items() if method.missing(context) is None]
