"""Attributes that are computed when they are first asked for, in a way that torch.compile can follow."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801  a decorator, named as functools.cached_property is
    """As `functools.cached_property`, without the lock that it has in Python 3.11, at which a graph would break.

    An attribute may also be set before it is asked for: then it is what was set.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "once[T]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> "T | once[T]":
        if instance is None:
            return self
        value = self.function(instance)
        setattr(instance, self.name, value)
        return value
